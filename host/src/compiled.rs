//! The compiler of components, which runs in child processes, and the folder for compiled code. Some
//! components compile in minutes; compiled code loads in milliseconds.

use std::path::{Path, PathBuf};

use oarlock_plugin::{EngineConfig, compiler::Compiler};

use crate::{args::Environment, failure::Failure, private_folder::prepare};

/// Returns the configuration of the engine. A folder that the user named must be usable; the default folder
/// is used if it is.
pub(crate) fn engine_config(
    given: Option<PathBuf>,
    environment: &Environment,
) -> Result<EngineConfig, Failure> {
    let cache_dir = match given {
        Some(folder) => {
            prepare(&folder).map_err(|error| {
                let context = format!("--cache-dir {} cannot be used", folder.display());
                Failure::caller(anyhow::Error::new(error).context(context))
                    .hint("name a folder that only this user can write to")
            })?;
            Some(folder)
        }
        None => {
            caches(environment).map(|caches| caches.join("compiled")).filter(|folder| match prepare(folder) {
                Ok(()) => true,
                Err(error) => {
                    tracing::info!(folder = %folder.display(), %error, "compiled plugins are not stored");
                    false
                }
            })
        }
    };
    Ok(EngineConfig { cache_dir, compiler: compiler(), ..EngineConfig::default() })
}

fn compiler() -> Compiler {
    let own_groups = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let limit = memory_limit(Path::new("/sys/fs/cgroup"), &own_groups);
    let arguments = vec!["compile-component".into()];
    let total_memory = limit.map(share_of_compilers);
    Compiler { program: this_program(), arguments, total_memory, ..Compiler::default() }
}

/// Returns the memory that compilers may use together in a container with this limit. The caches and the
/// plugins need the rest.
fn share_of_compilers(limit: u64) -> u64 {
    limit / 8 * 5
}

/// Version 1 of control groups writes no limit as the largest 64-bit number of whole pages. No machine has as
/// much memory as this.
const NO_LIMIT: u64 = 1 << 60;

/// Returns the lowest limit of memory of this process's control groups in bytes; none if there is no limit.
///
/// `mounted` is the folder of all groups. `own_groups` has a line `ID:CONTROLLERS:PATH` for each hierarchy.
/// In a container the path is `/`, or one of the machine that is not in the folder: then the folder is that
/// of the container's group.
fn memory_limit(mounted: &Path, own_groups: &str) -> Option<u64> {
    let limits = own_groups.lines().filter_map(|line| {
        let (_, group) = line.split_once(':')?;
        let (controllers, path) = group.split_once(':')?;
        // Version 2 names no controllers.
        let (hierarchy, file) = match controllers.split(',').any(|it| it == "memory") {
            true => (mounted.join("memory"), "memory.limit_in_bytes"),
            false if controllers.is_empty() => (mounted.to_owned(), "memory.max"),
            false => return None,
        };
        let groups = Path::new(path.trim_start_matches('/')).ancestors();
        let texts = groups.filter_map(|it| std::fs::read_to_string(hierarchy.join(it).join(file)).ok());
        // Version 2 writes `max` for no limit.
        let limits = texts.filter_map(|text| text.trim().parse().ok());
        limits.filter(|limit| *limit < NO_LIMIT).min()
    });
    limits.min()
}

/// Returns a path of the program that runs, even if another version of it has replaced its file since it
/// started.
pub(crate) fn this_program() -> Option<PathBuf> {
    let running = Path::new("/proc/self/exe");
    if running.exists() { Some(running.to_owned()) } else { std::env::current_exe().ok() }
}

/// Returns the folder for this project's caches, which it shares with `cargo xtask`.
pub(crate) fn caches(environment: &Environment) -> Option<PathBuf> {
    let Environment { home, xdg_cache_home, .. } = environment;
    // The XDG base directory specification says that a relative path counts as not set.
    let cache = xdg_cache_home.clone().filter(|path| path.is_absolute());
    let cache =
        cache.or_else(|| home.as_ref().filter(|path| path.is_absolute()).map(|home| home.join(".cache")))?;
    Some(cache.join("oarlock"))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn promise_4_compilers_leave_a_part_of_the_containers_memory_to_the_host() {
        let mounted = tempfile::tempdir().unwrap();
        let set = |file: &str, text: &str| {
            let path = mounted.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        let limit = |own_groups| memory_limit(mounted.path(), own_groups);
        assert_eq!(limit("0::/\n"), None, "no folder");
        assert_eq!(limit("not: a group\n"), None);

        set("memory/memory.limit_in_bytes", "2147483648\n");
        let version_1 = "12:cpu,cpuacct:/docker/1f2e\n5:memory:/docker/1f2e\n0::/docker/1f2e\n";
        assert_eq!(limit(version_1), Some(2 << 30));
        assert_eq!(limit("0::/\n"), None, "another version");
        set("memory/memory.limit_in_bytes", "9223372036854771712\n");
        assert_eq!(limit(version_1), None, "no limit");

        set("memory.max", "4294967296\n");
        assert_eq!(limit("0::/\n").map(share_of_compilers), Some(2_560 << 20));
        set("memory.max", "max\n");
        assert_eq!(limit("0::/\n"), None);

        // The service of a machine, in a group with a limit.
        set("system.slice/memory.max", "1073741824\n");
        set("system.slice/oarlock.service/memory.max", "max\n");
        assert_eq!(limit("0::/system.slice/oarlock.service\n"), Some(1 << 30));
        set("system.slice/oarlock.service/memory.max", "536870912\n");
        assert_eq!(limit("0::/system.slice/oarlock.service\n"), Some(512 << 20));
    }

    #[test]
    fn the_users_cache_folder_is_the_default_and_may_be_unusable() {
        let dir = tempfile::tempdir().unwrap();
        let environment = Environment { home: Some(dir.path().to_owned()), ..Environment::default() };
        let config = engine_config(None, &environment).unwrap();
        assert_eq!(config.cache_dir, Some(dir.path().join(".cache/oarlock/compiled")));

        let xdg_cache_home = Some(dir.path().join("xdg"));
        let environment = Environment { xdg_cache_home, ..environment };
        let config = engine_config(None, &environment).unwrap();
        assert_eq!(config.cache_dir, Some(dir.path().join("xdg/oarlock/compiled")));

        let file = dir.path().join("file");
        fs::write(&file, b"").unwrap();
        let environment = Environment { xdg_cache_home: Some(file.clone()), ..Environment::default() };
        assert_eq!(engine_config(None, &environment).unwrap().cache_dir, None);
        assert_eq!(engine_config(None, &Environment::default()).unwrap().cache_dir, None);
        let open = dir.path().join("open");
        fs::create_dir(&open).unwrap();
        fs::set_permissions(&open, fs::Permissions::from_mode(0o777)).unwrap();
        let refused = engine_config(Some(open), &environment).unwrap_err().text();
        assert!(refused.contains("other users can write to the folder"), "{refused}");
        assert!(
            engine_config(Some(file), &environment).is_err(),
            "a folder that the user named must be usable"
        );
    }
}

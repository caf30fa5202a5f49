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
    let total_memory = container_memory(Path::new("/sys/fs/cgroup")).map(share_of_compilers);
    let arguments = vec!["compile-component".into()];
    Compiler { program: this_program(), arguments, total_memory, ..Compiler::default() }
}

/// Returns the memory that compilers may use together in a container with this limit. The caches and the
/// plugins need the rest.
fn share_of_compilers(container: u64) -> u64 {
    container / 8 * 5
}

/// Returns the limit of the container's memory in bytes, from the folder of the control groups; none if there
/// is no limit. In a container this folder is that of its own group, with version 1 and 2 alike.
fn container_memory(cgroup: &Path) -> Option<u64> {
    let read = |file| std::fs::read_to_string(cgroup.join(file)).ok();
    let limit = read("memory.max").or_else(|| read("memory/memory.limit_in_bytes"))?;
    // Version 2 writes `max` for no limit, version 1 a number above all memory.
    limit.trim().parse().ok()
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
        let cgroup = tempfile::tempdir().unwrap();
        assert_eq!(container_memory(cgroup.path()), None, "not in a container");
        fs::create_dir(cgroup.path().join("memory")).unwrap();
        fs::write(cgroup.path().join("memory/memory.limit_in_bytes"), "2147483648\n").unwrap();
        assert_eq!(container_memory(cgroup.path()), Some(2 << 30));
        fs::write(cgroup.path().join("memory.max"), "4294967296\n").unwrap();
        let limit = container_memory(cgroup.path());
        assert_eq!(limit.map(share_of_compilers), Some(2_560 << 20));
        fs::write(cgroup.path().join("memory.max"), "max\n").unwrap();
        assert_eq!(container_memory(cgroup.path()), None);
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

//! The binary of a release image: the same from one commit, in whatever folder it is built.
//!
//! Compilers write paths into a binary, and flags replace most of them. Build scripts and macros write paths
//! too, which no flag replaces: a macro of wasmtime names the folder of its output. So the build runs in a
//! mount namespace of its own, where the checkout and the folder of cargo have the same path everywhere.
//!
//! The compiler optimises it by an execution profile ([`crate::profile`]). The binaries that make the profile
//! are built here as well: the profile fits only the settings with which it was made.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::toolchain::command;
use crate::{cargo, checkout, profile, progress};

/// The folder of cargo's output for images, in the checkout. Its flags differ from those of other builds.
const TARGET: &str = "target/image-build";

/// The same for the binaries that make the execution profile.
const COUNTING_TARGET: &str = "target/profile-build";

/// The path of the checkout in the mount namespace.
const MOUNTED_ROOT: &str = "/mnt";

/// The folder of the checkout onto which the folder of cargo is mounted.
const MOUNTED_HOME: &str = "target/image-build-cargo-home";

/// Mounts the folder of cargo `$1` onto `$2`, a folder in the checkout `$3`, then that onto `$4`, and runs
/// the other arguments there.
const MOUNT: &str =
    r#"mount --rbind "$1" "$2" && mount --rbind "$3" "$4" && cd "$4" && shift 4 && exec "$@""#;

/// Builds the release binary of this checkout.
pub(super) fn release() -> Result<PathBuf> {
    in_folder(checkout::root())
}

/// Builds the binaries that make the execution profile, the host and `oarlock-bench`: they count how often
/// each part of their code runs.
pub(super) fn counting() -> Result<[PathBuf; 2]> {
    let root = checkout::root();
    let mut build = release_build(root, COUNTING_TARGET);
    build.args(["--bin", "oarlock-bench"]);
    // Build scripts and macros count as well, and write what they have counted.
    build.env("LLVM_PROFILE_FILE", "/dev/null");
    build_with(&mut build, root, &cargo_home()?, Some("-Cprofile-generate".into()))?;
    Ok(["oarlock", "oarlock-bench"].map(|name| root.join(COUNTING_TARGET).join("release").join(name)))
}

/// Checks that the checkout is its last commit.
///
/// What benchmarks have recorded is in no image, so it may be uncommitted.
pub(super) fn ensure_committed() -> Result<()> {
    let changes = git(checkout::root(), &["status", "--porcelain", "--", ".", ":(exclude)bench/results"])?;
    ensure!(
        changes.is_empty(),
        "the checkout has changes that are in no commit:\n{changes}Fix: commit them, since the second build is that of the last commit"
    );
    Ok(())
}

/// Builds the binary of the last commit in a temporary folder, and has `use_it` use it.
pub(super) fn elsewhere<T>(use_it: impl FnOnce(&Path) -> Result<T>) -> Result<T> {
    let folder = tempfile::Builder::new().prefix("oarlock-image-").tempdir()?;
    let clone = folder.path().join("another-name-of-the-checkout");
    let mut git = Command::new("git");
    git.args(["clone", "--quiet", "--local", "--no-hardlinks"]).arg(checkout::root()).arg(&clone);
    command::run(&mut git)?;
    let binary = progress::step("the host a second time, in another folder", || in_folder(&clone))?;
    use_it(&binary)
}

/// Builds the host in a checkout. No path of this machine gets into the binary.
fn in_folder(root: &Path) -> Result<PathBuf> {
    let home = cargo_home()?;
    let mut build = release_build(root, TARGET);
    let profile = profile::find(root)?;
    let flag = |root: &Path| {
        profile.as_ref().map(|profile| format!("-Cprofile-use={}", root.join(profile).display()))
    };
    match command::run(&mut mounted(&cargo::cargo("--version"), root, &home)?) {
        Ok(()) => {
            let mounted_root = Path::new(MOUNTED_ROOT);
            let home_there = mounted_root.join(MOUNTED_HOME);
            build.env("CARGO_TARGET_DIR", mounted_root.join(TARGET));
            build_with(&mut mounted(&build, root, &home)?, mounted_root, &home_there, flag(mounted_root))?;
        }
        Err(error) => {
            progress::say(format!(
                "the binary, and so the digest of an image of it, will depend on the path of this checkout, since the build cannot run in a mount namespace: {error:#}\nFix: run as root, or as a user who may use `unshare --mount --map-root-user`, with cargo outside of {MOUNTED_ROOT}"
            ));
            build_with(&mut build, root, &home, flag(root))?;
        }
    }
    Ok(root.join(TARGET).join("release/oarlock"))
}

/// Returns the build of the host of a checkout, into a folder of it. Its settings are those of the execution
/// profile, too: with others, functions have other symbols.
fn release_build(root: &Path, target: &str) -> Command {
    let mut build = cargo::cargo("build");
    build.current_dir(root).args(["--workspace", "--bin", "oarlock", "--release", "--locked"]);
    build.env("CARGO_TARGET_DIR", root.join(target));
    // Line tables are four fifths of the file. The names of functions stay, for backtraces.
    build.env("CARGO_PROFILE_RELEASE_DEBUG", "none");
    build
}

/// Runs a build that finds the checkout and the folder of cargo at these paths, with one more flag of rustc.
fn build_with(build: &mut Command, root: &Path, home: &Path, more: Option<String>) -> Result<()> {
    // Compilers apply the last prefix that matches, and the folder of cargo may be in the checkout.
    let prefixes = [(root, "/oarlock"), (home, "/cargo")];
    for (path, _) in prefixes {
        // Flags of C compilers are separated by spaces.
        let is_plain = path.to_str().is_some_and(|path| !path.contains(char::is_whitespace));
        ensure!(is_plain, "{} has a space. Fix: build in a folder without", path.display());
    }
    build.env("CARGO_HOME", home);
    build.env("CARGO_INCREMENTAL", "0").env_remove("RUSTFLAGS");
    hide_repository(build, home);
    // A server of a wrapper, as sccache has one, does not see the mounts of this build.
    for name in ["RUSTC_WRAPPER", "RUSTC_WORKSPACE_WRAPPER"] {
        build.env(name, "").env(format!("CARGO_BUILD_{name}"), "");
    }
    let rustc_flags = flags("--remap-path-prefix=", &prefixes).chain(more).collect::<Vec<_>>();
    build.env("CARGO_ENCODED_RUSTFLAGS", rustc_flags.join("\u{1f}"));
    for name in ["CFLAGS", "CXXFLAGS"] {
        build.env(name, flags("-ffile-prefix-map=", &prefixes).collect::<Vec<_>>().join(" "));
    }
    cargo::run(build)
}

/// Hides the repository of the checkout from build scripts of dependencies, if the folder of cargo is in it.
/// That of cranelift-codegen asks git for a commit, once, and the code keeps the answer over later commits.
fn hide_repository(build: &mut Command, home: &Path) {
    build.env("GIT_CEILING_DIRECTORIES", home).env_remove("GIT_DIR");
}

/// Returns a command that runs `command` in a mount namespace of its own, where the checkout and the folder
/// of cargo have paths that are the same everywhere. The mounts end with the command.
fn mounted(command: &Command, root: &Path, home: &Path) -> Result<Command> {
    let mount_point = root.join(MOUNTED_HOME);
    fs::create_dir_all(&mount_point).with_context(|| format!("cannot create {}", mount_point.display()))?;
    let mut unshare = in_namespace();
    unshare.args(["sh", "-c", MOUNT, "sh"]);
    unshare.args([home, &mount_point, root, Path::new(MOUNTED_ROOT)]);
    unshare.arg(command.get_program()).args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => unshare.env(name, value),
            None => unshare.env_remove(name),
        };
    }
    Ok(unshare)
}

/// Returns a command that runs its further arguments in a mount namespace of its own.
fn in_namespace() -> Command {
    let mut unshare = Command::new("unshare");
    unshare.arg("--mount");
    if !rustix::process::geteuid().is_root() {
        // Root needs no user namespace, in which it could not write the files of other users.
        unshare.arg("--map-root-user");
    }
    unshare
}

/// Returns the folder of cargo, with the sources of dependencies.
fn cargo_home() -> Result<PathBuf> {
    match env::var_os("CARGO_HOME") {
        Some(home) => Ok(home.into()),
        None => Ok(env::home_dir().context("no home folder, and no CARGO_HOME")?.join(".cargo")),
    }
}

fn flags(flag: &str, prefixes: &[(&Path, &str)]) -> impl Iterator<Item = String> {
    prefixes.iter().map(move |(path, to)| format!("{flag}{}={to}", path.display()))
}

fn git(root: &Path, arguments: &[&str]) -> Result<String> {
    command::output(Command::new("git").current_dir(root).args(arguments))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_build_script_of_a_dependency_finds_no_repository() {
        let folder = tempfile::tempdir().unwrap();
        let checkout = folder.path().canonicalize().unwrap();
        let home = checkout.join(MOUNTED_HOME);
        fs::create_dir_all(home.join("registry/a-crate")).unwrap();
        command::run(Command::new("git").args(["init", "--quiet"]).arg(&checkout)).unwrap();
        let is_found = |is_hidden: bool| {
            let mut git = Command::new("git");
            git.args(["rev-parse", "--show-toplevel"]).current_dir(home.join("registry/a-crate"));
            if is_hidden {
                hide_repository(&mut git, &home);
            }
            command::output(&mut git).is_ok()
        };
        assert!(is_found(false) && !is_found(true));
    }

    #[test]
    fn a_build_finds_every_checkout_at_the_same_paths() {
        if let Err(error) = command::run(in_namespace().arg("true")) {
            oarlock_built_guests::skip(&format!("this machine allows no mount namespace: {error:#}"));
        }
        let seen_in = |name: &str| {
            let folder = tempfile::Builder::new().prefix(name).tempdir().unwrap();
            let (root, home) = (folder.path().join("a checkout"), folder.path().join("a home"));
            for path in [&root, &home] {
                fs::create_dir(path).unwrap();
                fs::write(path.join("file"), format!("in {}\n", path.file_name().unwrap().display()))
                    .unwrap();
            }
            let mut command = Command::new("sh");
            command.args(["-c", "pwd; cat file target/image-build-cargo-home/file; echo $SET"]);
            command.env("SET", "set");
            let seen = command::output(&mut mounted(&command, &root, &home).unwrap()).unwrap();
            assert!(!root.join(MOUNTED_HOME).join("file").exists(), "the mounts end with the command");
            seen
        };
        assert_eq!(seen_in("one"), "/mnt\nin a checkout\nin a home\nset\n");
        assert_eq!(seen_in("another-name"), seen_in("one"));
    }
}

//! The binary of a release image: the same from one commit, in whatever folder it is built.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::toolchain::command;
use crate::{cargo, checkout, progress};

/// The folder of cargo's output for images, in the checkout. Its flags differ from those of other builds.
const TARGET: &str = "target/image-build";

/// Builds the release binary of this checkout.
pub(super) fn release() -> Result<PathBuf> {
    in_folder(checkout::root())
}

/// Builds the binary of the last commit in a temporary folder, and has `use_it` use it.
pub(super) fn elsewhere<T>(use_it: impl FnOnce(&Path) -> Result<T>) -> Result<T> {
    let changes = git(checkout::root(), &["status", "--porcelain"])?;
    ensure!(
        changes.is_empty(),
        "the checkout has changes that are in no commit:\n{changes}Fix: commit them, since the second build is that of the last commit"
    );
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
    let target = root.join(TARGET);
    let prefixes = prefixes(root, &target)?;
    let mut build = cargo::cargo("build");
    build.current_dir(root).args(["--workspace", "--bin", "oarlock", "--release", "--locked"]);
    build.env("CARGO_TARGET_DIR", &target).env("CARGO_INCREMENTAL", "0").env_remove("RUSTFLAGS");
    // Compilers apply the last prefix that matches.
    build.env("CARGO_ENCODED_RUSTFLAGS", flags("--remap-path-prefix=", &prefixes, "\u{1f}"));
    for name in ["CFLAGS", "CXXFLAGS"] {
        build.env(name, flags("-ffile-prefix-map=", &prefixes, " "));
    }
    cargo::run(&mut build)?;
    Ok(target.join("release/oarlock"))
}

/// Returns the folders whose paths compilers write into a binary, each with what is written instead.
fn prefixes(root: &Path, target: &Path) -> Result<Vec<(PathBuf, &'static str)>> {
    let home = match env::var_os("CARGO_HOME") {
        Some(home) => PathBuf::from(home),
        None => env::home_dir().context("no home folder, and no CARGO_HOME")?.join(".cargo"),
    };
    let prefixes =
        vec![(home, "/cargo"), (root.to_owned(), "/oarlock"), (target.to_owned(), "/oarlock/target")];
    for (path, _) in &prefixes {
        // Flags of C compilers are separated by spaces.
        let is_plain = path.to_str().is_some_and(|path| !path.contains(char::is_whitespace));
        ensure!(is_plain, "{} has a space. Fix: build in a folder without", path.display());
    }
    Ok(prefixes)
}

fn flags(flag: &str, prefixes: &[(PathBuf, &str)], separator: &str) -> OsString {
    let flags = prefixes.iter().map(|(path, to)| format!("{flag}{}={to}", path.display()));
    flags.collect::<Vec<_>>().join(separator).into()
}

fn git(root: &Path, arguments: &[&str]) -> Result<String> {
    command::output(Command::new("git").current_dir(root).args(arguments))
}

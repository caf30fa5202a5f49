//! The host of the version before, from which the upgrade of `tests/node` starts: built once from its commit,
//! and kept in the cache of all checkouts.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::toolchain::{cache, command};
use crate::{cargo, checkout, progress};

/// The commit of the version before. When there is a release, its tag comes here.
const COMMIT: &str = "d54cbc36c885dd570b8223d59d1eac68cc1a3588";

/// Returns the program of the version before, after a build if the cache has none. `None` if this clone does
/// not have its commit.
pub(crate) fn program() -> Result<Option<PathBuf>> {
    let name = format!("previous-{COMMIT}");
    if cache::existing_entry(&name)?.is_none() && !has_commit(checkout::root(), COMMIT) {
        progress::say(format!(
            "SKIPPED the version before: this clone has no commit {COMMIT}, so the upgrade is between two images \
             of one program. Get it: git fetch --unshallow"
        ));
        return Ok(None);
    }
    let folder = cache::entry(&name, |folder| {
        progress::step("the host of the version before (some 15 minutes, once)", || build(folder))
    })?;
    Ok(Some(folder.join("oarlock")))
}

fn has_commit(repository: &Path, commit: &str) -> bool {
    let object = format!("{commit}^{{commit}}");
    command::output(git(repository, ["cat-file", "-e"]).arg(object)).is_ok()
}

/// Builds the program in a git worktree inside of this folder, and leaves nothing else there.
fn build(folder: &Path) -> Result<()> {
    let (source, target) = (folder.join("source"), folder.join("target"));
    let root = checkout::root();
    // A build that was killed has left the record of its worktree.
    command::run(&mut git(root, ["worktree", "prune"]))?;
    command::run(git(root, ["worktree", "add", "--detach"]).arg(&source).arg(COMMIT))?;
    let mut cargo = cargo::cargo("build");
    cargo.args(["--workspace", "--bin", "oarlock"]).current_dir(&source).env("CARGO_TARGET_DIR", &target);
    let built = cargo::run(&mut cargo).and_then(|()| {
        fs::copy(target.join("debug/oarlock"), folder.join("oarlock")).context("cannot copy the program")
    });
    command::run(git(root, ["worktree", "remove", "--force"]).arg(&source))?;
    built?;
    fs::remove_dir_all(&target).with_context(|| format!("cannot remove {}", target.display()))
}

fn git(repository: &Path, arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Command {
    let mut git = Command::new("git");
    git.arg("-C").arg(repository).args(arguments);
    git
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_commit_that_a_clone_lacks_is_noticed() {
        let head = command::output(&mut git(checkout::root(), ["rev-parse", "HEAD"])).unwrap();
        assert!(has_commit(checkout::root(), head.trim()));
        assert!(!has_commit(checkout::root(), &"0".repeat(40)));
    }
}

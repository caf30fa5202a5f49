//! What a machine must have so that a node can run on it.

use std::env;
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use oarlock_guest_build::toolchain::command;

use crate::cgroups::Cgroups;
use crate::{Programs, folder};

/// Programs of the machine that a node needs, each with its Debian package.
const TOOLS: [(&str, &str); 4] =
    [("unshare", "util-linux"), ("nsenter", "util-linux"), ("mount", "mount"), ("ip", "iproute2")];

/// The free space that the builds need, in GiB: Go's own cache is the largest part of it.
const BUILD_GIB: u64 = 6;

/// Returns why no node can run on this machine, with what can be done about it.
#[must_use]
pub fn lacks() -> Option<String> {
    if !cfg!(target_os = "linux") {
        return Some("a node needs Linux".to_owned());
    }
    if !rustix::process::geteuid().is_root() {
        return Some(
            "a node needs root, for namespaces, mounts and cgroups; run this command with sudo".to_owned(),
        );
    }
    if let Some((tool, package)) = TOOLS.iter().find(|(tool, _)| !command::exists(tool)) {
        return Some(format!("`{tool}` is missing; get it: apt-get install {package}"));
    }
    Cgroups::lacks()
}

/// Checks that a node can run here, builds what it needs, and removes what killed runs have left. `crane`
/// builds that program, and returns its path.
///
/// # Errors
///
/// When the machine lacks something, with what can be done about it.
pub fn prepare(crane: impl FnOnce() -> Result<PathBuf>) -> Result<Programs> {
    if let Some(lack) = lacks() {
        bail!("{lack}");
    }
    folder::remove_leftovers()?;
    if !Programs::are_built()? {
        check_space(&env::home_dir().unwrap_or_else(env::temp_dir))?;
    }
    Programs::build(&crane()?)
}

fn check_space(folder: &Path) -> Result<()> {
    // A file system that cannot say how full it is, is not refused.
    let Ok(found) = rustix::fs::statvfs(folder) else { return Ok(()) };
    let free = found.f_bavail * found.f_frsize;
    if let Some(error) = too_little(free) {
        bail!("{}: {error}", folder.display());
    }
    Ok(())
}

fn too_little(free: u64) -> Option<String> {
    const GIB: u64 = 1 << 30;
    (free < BUILD_GIB * GIB).then(|| {
        format!(
            "the file system has {:.1} GiB free, and the builds of Kubernetes and containerd need {BUILD_GIB} GiB; \
             free some space, or set GOCACHE, GOMODCACHE and XDG_CACHE_HOME to folders of another file system",
            free as f64 / GIB as f64
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_without_space_for_the_builds_is_refused() {
        let error = too_little(3 << 29).unwrap();
        assert!(error.starts_with("the file system has 1.5 GiB free, and the builds"), "{error}");
        assert_eq!(too_little(6 << 30), None);
    }
}

//! The cgroups of one node: one folder in each hierarchy, under which the kubelet makes those of the Pods.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::wait_until;

/// Where cgroups are mounted.
const ROOT: &str = "/sys/fs/cgroup";

/// The controllers that the kubelet uses. A kernel may lack some of them.
const CONTROLLERS: [&str; 6] = ["cpuset", "cpu", "io", "memory", "hugetlb", "pids"];

/// The cgroups of a node. Dropping them removes them; no process may be in them any more.
#[derive(Debug)]
pub(crate) struct Cgroups {
    name: String,
}

// === impl Cgroups ===

impl Cgroups {
    /// Returns why cgroups cannot be used.
    pub(crate) fn lacks() -> Option<String> {
        let root = Path::new(ROOT);
        let probe = || -> Result<()> {
            for hierarchy in hierarchies(root)? {
                let folder = hierarchy.join(format!("oarlock-node-probe-{}", std::process::id()));
                fs::create_dir(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
                fs::remove_dir(&folder).with_context(|| format!("cannot remove {}", folder.display()))?;
            }
            Ok(())
        };
        let error = match hierarchies(root) {
            Ok(found) if found.is_empty() => format!("{ROOT} has no cgroups"),
            Ok(_) => format!("{:#}", probe().err()?),
            Err(error) => format!("{error:#}"),
        };
        Some(format!(
            "a node needs cgroups that it may write: {error}. In a container, give it --privileged and --cgroupns=host"
        ))
    }

    /// Makes the folders.
    pub(crate) fn create(name: &str) -> Result<Self> {
        let cgroups = Self { name: name.to_owned() };
        let root = Path::new(ROOT);
        if is_unified(root) {
            for controller in CONTROLLERS {
                // One that the kernel lacks, or that the kubelet does not require, cannot be enabled.
                let _ = fs::write(root.join("cgroup.subtree_control"), format!("+{controller}"));
            }
        }
        for hierarchy in hierarchies(root)? {
            let folder = hierarchy.join(name);
            fs::create_dir(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
            for file in ["cpuset.cpus", "cpuset.mems"] {
                // In version 1 no process can be in a cgroup in which these are empty.
                if let Ok(value) = fs::read(hierarchy.join(file)) {
                    fs::write(folder.join(file), value)
                        .with_context(|| format!("cannot write {}", folder.join(file).display()))?;
                }
            }
        }
        Ok(cgroups)
    }

    /// Returns the path of these cgroups in each hierarchy.
    pub(crate) fn path(&self) -> String {
        format!("/{}", self.name)
    }
}

impl Drop for Cgroups {
    fn drop(&mut self) {
        if let Err(error) = remove(&self.name) {
            oarlock_guest_build::progress::say(format!("the node's cgroups are left: {error:#}"));
        }
    }
}

/// Removes the cgroups of this name, and waits until the processes in them have ended.
pub(crate) fn remove(name: &str) -> Result<()> {
    for hierarchy in hierarchies(Path::new(ROOT))? {
        let folder = hierarchy.join(name);
        wait_until(&format!("the end of all processes in {}", folder.display()), || remove_tree(&folder))?;
    }
    Ok(())
}

/// Removes a cgroup and those below it. They hold no files of their own.
fn remove_tree(folder: &Path) -> Result<(), String> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(format!("cannot read {}: {error}", folder.display())),
    };
    for entry in entries.flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            remove_tree(&entry.path())?;
        }
    }
    match fs::remove_dir(folder) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(format!("cannot remove {}: {error}", folder.display()))
        }
        _ => Ok(()),
    }
}

/// Returns whether all controllers are in one hierarchy: version 2.
pub(crate) fn is_unified(root: &Path) -> bool {
    root.join("cgroup.controllers").is_file()
}

/// Returns the root of version 2, or the root of each hierarchy of version 1.
fn hierarchies(root: &Path) -> Result<Vec<PathBuf>> {
    if is_unified(root) {
        return Ok(vec![root.to_owned()]);
    }
    let mut found = Vec::new();
    for entry in fs::read_dir(root).with_context(|| format!("cannot read {}", root.display()))? {
        let path = entry?.path();
        // Two names of one hierarchy, such as `cpu` and `cpu,cpuacct`, are a folder and a link to it.
        if path.join("cgroup.procs").is_file() && !path.is_symlink() {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_hierarchy_of_version_1_is_found_once_and_the_root_of_version_2() {
        let root = tempfile::tempdir().unwrap();
        for hierarchy in ["cpu,cpuacct", "memory"] {
            fs::create_dir(root.path().join(hierarchy)).unwrap();
            fs::write(root.path().join(hierarchy).join("cgroup.procs"), "").unwrap();
        }
        std::os::unix::fs::symlink("cpu,cpuacct", root.path().join("cpu")).unwrap();
        fs::create_dir(root.path().join("no-hierarchy")).unwrap();
        let expected = ["cpu,cpuacct", "memory"].map(|name| root.path().join(name));
        assert_eq!(hierarchies(root.path()).unwrap(), expected);

        fs::write(root.path().join("cgroup.controllers"), "cpu memory").unwrap();
        assert_eq!(hierarchies(root.path()).unwrap(), [root.path()]);
    }

    #[test]
    fn a_tree_of_cgroups_is_removed_with_its_root() {
        let root = tempfile::tempdir().unwrap();
        let tree = root.path().join("oarlock-node-1");
        fs::create_dir_all(tree.join("kubepods/burstable")).unwrap();
        remove_tree(&tree).unwrap();
        assert!(!tree.exists());
        remove_tree(&tree).unwrap();
    }
}

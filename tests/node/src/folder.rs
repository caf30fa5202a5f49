//! The folder of one node, outside of its namespaces: credentials, configuration, logs.
//!
//! Its name is also that of the node's cgroups. A lock on it says that its node runs; a folder without a
//! lock is what a killed process has left.

use std::env;
use std::fs::{self, DirBuilder, File};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use oarlock_guest_build::progress;
use oarlock_guest_build::toolchain::cache;

use crate::cgroups;

/// How the names of all folders begin.
const PREFIX: &str = "oarlock-node-";

/// The file in the folder that its node has locked.
const LOCK: &str = "lock";

/// The folder of a node. Dropping it removes it.
#[derive(Debug)]
pub(crate) struct Folder {
    path: PathBuf,
    name: String,
    _lock: File,
}

// === impl Folder ===

impl Folder {
    pub(crate) fn create() -> Result<Self> {
        let base = env::temp_dir();
        let _all = lock_all(&base)?;
        for n in 1..1000 {
            let name = format!("{PREFIX}{n}");
            let path = base.join(&name);
            if path.exists() {
                continue;
            }
            DirBuilder::new()
                .mode(0o700)
                .create(&path)
                .with_context(|| format!("cannot create {}", path.display()))?;
            let lock = cache::lock(&path.join(LOCK), &name)?;
            for name in ["state", "config", "logs"] {
                fs::create_dir(path.join(name)).with_context(|| format!("cannot create {name}"))?;
            }
            return Ok(Self { path, name, _lock: lock });
        }
        bail!("{} has 999 folders of nodes; remove those that are not used", base.display())
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the folder of what the node writes: a tmpfs in its mount namespace, and empty outside of it.
    pub(crate) fn state(&self, name: &str) -> PathBuf {
        self.path.join("state").join(name)
    }

    pub(crate) fn config(&self, name: &str) -> PathBuf {
        self.path.join("config").join(name)
    }

    pub(crate) fn log(&self, name: &str) -> PathBuf {
        self.path.join("logs").join(format!("{name}.log"))
    }

    /// Writes a file of configuration, and returns its path.
    pub(crate) fn write(&self, name: &str, text: &str) -> Result<PathBuf> {
        let path = self.config(name);
        fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
        Ok(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.path) {
            progress::say(format!("{} is left: {error}", self.path.display()));
        }
    }
}

/// Removes the folders and cgroups of nodes whose process was killed.
pub(crate) fn remove_leftovers() -> Result<()> {
    let base = env::temp_dir();
    let _all = lock_all(&base)?;
    for name in leftovers(&base)? {
        progress::say(format!("removing what a killed run has left: {name}"));
        cgroups::remove(&name)?;
        let path = base.join(&name);
        fs::remove_dir_all(&path).with_context(|| format!("cannot remove {}", path.display()))?;
    }
    Ok(())
}

/// Returns the names of folders that no process has locked.
fn leftovers(base: &Path) -> Result<Vec<String>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(base).with_context(|| format!("cannot read {}", base.display()))? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let Some(number) = name.strip_prefix(PREFIX) else { continue };
        if number.parse::<u32>().is_err() || !entry.file_type()?.is_dir() {
            continue;
        }
        match File::open(entry.path().join(LOCK)) {
            Ok(lock) if lock.try_lock().is_err() => {}
            _ => found.push(name),
        }
    }
    Ok(found)
}

/// Locks the creation and removal of folders against other processes. The lock is on the folder that holds
/// them, so no file is left.
fn lock_all(base: &Path) -> Result<File> {
    let folder = File::open(base).with_context(|| format!("cannot open {}", base.display()))?;
    folder.lock().with_context(|| format!("cannot lock {}", base.display()))?;
    Ok(folder)
}

#[cfg(test)]
mod tests {
    use std::thread;
    use std::time::{Duration, Instant};

    use super::*;
    use crate::LIMIT;

    #[test]
    fn only_folders_without_a_lock_are_leftovers() {
        let base = tempfile::tempdir().unwrap();
        for name in ["oarlock-node-1", "oarlock-node-2", "oarlock-node-3", "oarlock-node-of-someone", "else"]
        {
            fs::create_dir(base.path().join(name)).unwrap();
        }
        // The first runs, the second was killed, the third was killed before it had a lock.
        let locked = cache::lock(&base.path().join("oarlock-node-1/lock"), "1").unwrap();
        drop(cache::lock(&base.path().join("oarlock-node-2/lock"), "2").unwrap());
        let mut found = leftovers(base.path()).unwrap();
        found.sort();
        assert_eq!(found, ["oarlock-node-2", "oarlock-node-3"]);
        drop(locked);
        // A process that another test starts holds the lock too, until it runs its program.
        let begun_at = Instant::now();
        while leftovers(base.path()).unwrap().len() < 3 {
            assert!(begun_at.elapsed() < LIMIT, "the folder of the first stays locked");
            #[expect(clippy::disallowed_methods, reason = "no runtime is here")]
            thread::sleep(Duration::from_millis(10));
        }
    }
}

//! `${XDG_CACHE_HOME:-~/.cache}/oarlock`: downloaded and built tools, shared by all checkouts.
//!
//! Each entry is a folder whose name contains its version. A complete entry is moved into place in one step,
//! so an interrupted build leaves no partial entry.

use std::env;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::progress;

/// Returns the entry `name`. If it is missing, `make` fills an empty folder that becomes the entry; other
/// processes wait.
pub fn entry(name: &str, make: impl FnOnce(&Path) -> Result<()>) -> Result<PathBuf> {
    entry_in(&root()?, name, make)
}

fn entry_in(root: &Path, name: &str, make: impl FnOnce(&Path) -> Result<()>) -> Result<PathBuf> {
    let entry = root.join(name);
    if entry.is_dir() {
        return Ok(entry);
    }
    let _lock = lock(&root.join(format!("{name}.lock")), name)?;
    if entry.is_dir() {
        return Ok(entry);
    }
    let partial = root.join(format!("{name}.partial"));
    if partial.exists() {
        fs::remove_dir_all(&partial).with_context(|| format!("cannot remove {}", partial.display()))?;
    }
    fs::create_dir_all(&partial).with_context(|| format!("cannot create {}", partial.display()))?;
    make(&partial)?;
    fs::rename(&partial, &entry).with_context(|| format!("cannot rename {}", partial.display()))?;
    Ok(entry)
}

/// Returns the entry `name`, if it exists.
pub fn existing_entry(name: &str) -> Result<Option<PathBuf>> {
    let entry = root()?.join(name);
    Ok(entry.is_dir().then_some(entry))
}

/// Locks `path` against other processes until the file is dropped, and prints a line if it has to wait.
pub fn lock(path: &Path, what: &str) -> Result<File> {
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent).with_context(|| format!("cannot create {}", parent.display()))?;
    }
    let file = File::create(path).with_context(|| format!("cannot open {}", path.display()))?;
    if file.try_lock().is_err() {
        progress::say(format!("waiting for another build of {what}"));
        file.lock().with_context(|| format!("cannot lock {}", path.display()))?;
    }
    Ok(file)
}

fn root() -> Result<PathBuf> {
    let base = env::var_os("XDG_CACHE_HOME")
        .map(PathBuf::from)
        .filter(|path| path.is_absolute())
        .or_else(|| env::home_dir().map(|home| home.join(".cache")))
        .context("no folder for caches: set XDG_CACHE_HOME or HOME")?;
    Ok(base.join("oarlock"))
}

#[cfg(test)]
mod tests {
    use anyhow::bail;

    use super::*;

    #[test]
    fn an_entry_is_created_once() {
        let root = tempfile::tempdir().unwrap();
        let made = entry_in(root.path(), "go-1", |folder| Ok(fs::write(folder.join("go"), "")?)).unwrap();
        let again = entry_in(root.path(), "go-1", |_| bail!("made twice")).unwrap();
        assert_eq!(made, again);
        assert!(again.join("go").is_file());
    }

    #[test]
    fn an_interrupted_build_leaves_no_entry() {
        let root = tempfile::tempdir().unwrap();
        entry_in(root.path(), "go-1", |folder| {
            fs::write(folder.join("half"), "")?;
            bail!("interrupted")
        })
        .unwrap_err();
        assert!(!root.path().join("go-1").exists());

        let made = entry_in(root.path(), "go-1", |folder| Ok(fs::write(folder.join("go"), "")?)).unwrap();
        assert!(made.join("go").is_file());
        assert!(!made.join("half").exists());
    }
}

//! `${XDG_CACHE_HOME:-~/.cache}/oarlock`: fetched and built tools, shared by all checkouts.
//!
//! Each entry is a folder whose name carries its version, and is put in place in one step when it is complete. An
//! interrupted build leaves nothing that a later one would take for an entry.

use std::env;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::progress;

/// The entry `name`. If it is not there, `make` fills an empty folder that becomes it, while other processes wait.
pub(crate) fn entry(name: &str, make: impl FnOnce(&Path) -> Result<()>) -> Result<PathBuf> {
    let root = root()?;
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

/// The entry `name`, if it is there.
pub(crate) fn existing_entry(name: &str) -> Result<Option<PathBuf>> {
    let entry = root()?.join(name);
    Ok(entry.is_dir().then_some(entry))
}

/// Holds `path` locked against other processes until dropped, and says so if that takes waiting.
pub(crate) fn lock(path: &Path, what: &str) -> Result<File> {
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

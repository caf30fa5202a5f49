//! Compiled code on disk: made once, mapped by every plugin of the same component, and after a restart of the host.
//!
//! What lies in the folder is run by the host as its own, so **who can write there is the host**. Therefore:
//!
//! - The folder belongs to the host's user and nobody else can write into it; its files are made for that user alone (mode 600),
//!   are looked at without following links, and are not used if any of that is no longer so.
//! - A file is named after the component's digest and what the code must fit ([`EngineTag`]): other code is never taken for it.
//! - Beside it lies the digest of the code, written after it: what was cut off or damaged is made anew.
//!
//! That digest is no signature. Someone who can write into the folder as the host's user can write both, as he can
//! change the host itself; do not share the folder with anyone who is trusted less than the host. Root is not kept out either.
//!
//! A file that is not there any more while it is mapped stays mapped; files are never changed, only made and removed.

mod mapped;

use std::{
    collections::hash_map::RandomState,
    fs::{self, DirBuilder, File, OpenOptions},
    hash::{BuildHasher as _, Hasher as _},
    io::{self, Read as _},
    os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, SystemTime},
};

use sha2::{Digest as _, Sha256};
use tempfile::TempDir;

use crate::{compiler::EngineTag, component::Digest};

/// What a file of code ends in.
const CODE: &str = "code";
/// And the file beside it with the code's digest.
const SUM: &str = "sum";
/// And one that is not finished.
const PART: &str = "part";

/// An unfinished file this old belongs to no one any more.
const ABANDONED: Duration = Duration::from_secs(6 * 3600);

/// Where compiled code lies.
#[derive(Debug)]
pub(crate) struct CodeStore {
    folder: PathBuf,
    /// The folder goes with the engine when nothing is to be kept.
    temporary: Option<TempDir>,
    max_bytes: u64,
    engine_tag: EngineTag,
    parts: AtomicU64,
}

/// A file that code is being written to. Dropping it removes it.
#[derive(Debug)]
pub(crate) struct Part {
    path: PathBuf,
    file: File,
}

// === impl CodeStore ===

impl CodeStore {
    /// Keeps code in a folder, which is made if missing.
    pub(crate) fn open(folder: &Path, max_bytes: u64, engine_tag: EngineTag) -> Result<Self, String> {
        DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(|e| e.to_string())?;
        let folder = folder.canonicalize().map_err(|e| e.to_string())?;
        check_private(&folder)?;
        // A folder below it: what other versions of the host keep there is none of our business.
        let folder = folder.join("code");
        DirBuilder::new().recursive(true).mode(0o700).create(&folder).map_err(|e| e.to_string())?;
        check_private(&folder)?;
        Ok(Self { folder, temporary: None, max_bytes, engine_tag, parts: AtomicU64::new(0) })
    }

    /// Keeps nothing: each file is removed as soon as it is mapped.
    pub(crate) fn temporary(engine_tag: EngineTag) -> Result<Self, String> {
        let temporary =
            tempfile::Builder::new().prefix("oarlock-code-").tempdir().map_err(|e| e.to_string())?;
        let folder = temporary.path().to_owned();
        Ok(Self { folder, temporary: Some(temporary), max_bytes: 0, engine_tag, parts: AtomicU64::new(0) })
    }

    /// The folder, for people.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    pub(crate) fn engine_tag(&self) -> EngineTag {
        self.engine_tag
    }

    /// Maps the code of a component; none if there is none that can be used.
    pub(crate) fn load(
        &self,
        engine: &wasmtime::Engine,
        component: &Digest,
    ) -> Option<wasmtime::component::Component> {
        if self.temporary.is_some() {
            return None;
        }
        let path = self.path(component, CODE);
        let loaded = self.load_from(engine, component, &path);
        if let Err(error) = &loaded
            && error.kind() != io::ErrorKind::NotFound
        {
            tracing::warn!(file = %path.display(), %error, "compiled code cannot be used and is made anew");
            self.remove(&path);
        }
        loaded.ok()
    }

    /// Begins to write code.
    pub(crate) fn part(&self) -> io::Result<Part> {
        let number = self.parts.fetch_add(1, Ordering::Relaxed);
        // Another process may have the same number: in containers every host is process 1, and they may share the folder.
        let random = RandomState::new().build_hasher().finish();
        let path = self.folder.join(format!("{}-{number}-{random:016x}.{PART}", std::process::id()));
        let file = OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(&path)?;
        Ok(Part { path, file })
    }

    /// Maps code that was just written, and keeps it if anything is kept.
    pub(crate) fn keep(
        &self,
        engine: &wasmtime::Engine,
        component: &Digest,
        mut part: Part,
    ) -> Result<wasmtime::component::Component, String> {
        if self.temporary.is_some() {
            return mapped::map(engine, &part.path).map_err(|e| format!("{e:#}"));
        }
        let path = self.path(component, CODE);
        let kept = (|| {
            let sum = self.sum(component, &mut part.file)?;
            part.file.sync_all()?;
            let mut beside = self.part()?;
            io::Write::write_all(&mut beside.file, &sum)?;
            // The code first: without its sum it is not used.
            fs::rename(&part.path, &path)?;
            fs::rename(&beside.path, self.path(component, SUM))
        })();
        let from = match &kept {
            Ok(()) => &path,
            Err(error) => {
                tracing::warn!(folder = %self.folder.display(), %error, "compiled code cannot be kept");
                if part.path.exists() { &part.path } else { &path }
            }
        };
        let mapped = mapped::map(engine, from).map_err(|e| format!("{e:#}"));
        self.evict();
        mapped
    }

    fn load_from(
        &self,
        engine: &wasmtime::Engine,
        component: &Digest,
        path: &Path,
    ) -> io::Result<wasmtime::component::Component> {
        let mut wanted = Vec::new();
        self.open_private(&self.path(component, SUM))?.take(64).read_to_end(&mut wanted)?;
        let mut file = self.open_private(path)?;
        if self.sum(component, &mut file)?.as_slice() != wanted {
            return Err(io::Error::other("it is damaged"));
        }
        // Used last: those are evicted last. Not being able to say so is no reason not to use it.
        let _ = file.set_modified(SystemTime::now());
        mapped::map(engine, path).map_err(|e| io::Error::other(format!("{e:#}")))
    }

    /// Opens a file if it is this user's alone.
    fn open_private(&self, path: &Path) -> io::Result<File> {
        let found = fs::symlink_metadata(path)?;
        let file = File::open(path)?;
        let opened = file.metadata()?;
        let own = fs::metadata(&self.folder)?.uid();
        let is_private = opened.is_file()
            && (found.dev(), found.ino()) == (opened.dev(), opened.ino())
            && opened.uid() == own
            && opened.mode() & 0o077 == 0;
        if is_private { Ok(file) } else { Err(io::Error::other("it is not a file of this user alone")) }
    }

    /// The digest of code, bound to the component that it is of.
    fn sum(&self, component: &Digest, code: &mut File) -> io::Result<[u8; 32]> {
        io::Seek::rewind(code)?;
        let mut sum = Sha256::new();
        sum.update(component.bytes());
        sum.update(self.engine_tag.0);
        let mut buffer = vec![0; 256 << 10];
        loop {
            match code.read(&mut buffer)? {
                0 => return Ok(sum.finalize().into()),
                n => sum.update(&buffer[..n]),
            }
        }
    }

    fn path(&self, component: &Digest, extension: &str) -> PathBuf {
        let mut name = Sha256::new();
        name.update(component.bytes());
        name.update(self.engine_tag.0);
        let name: [u8; 32] = name.finalize().into();
        self.folder.join(format!("{}.{extension}", Digest::from_bytes(name)))
    }

    fn remove(&self, code: &Path) {
        // Somebody else may have been faster.
        let _ = fs::remove_file(code.with_extension(SUM));
        let _ = fs::remove_file(code);
    }

    /// Removes the code that was not used for the longest, until the rest is within the bound.
    fn evict(&self) {
        let Ok(entries) = fs::read_dir(&self.folder) else { return };
        let mut files = Vec::new();
        for entry in entries.flatten() {
            let path = entry.path();
            let Ok(metadata) = entry.metadata() else { continue };
            let used = metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH);
            match path.extension().and_then(|it| it.to_str()) {
                Some(CODE) => files.push((used, metadata.len(), path)),
                Some(PART) if used.elapsed().is_ok_and(|age| age > ABANDONED) => {
                    let _ = fs::remove_file(path);
                }
                _ => {}
            }
        }
        let mut total: u64 = files.iter().map(|(_, bytes, _)| bytes).sum();
        files.sort();
        for (_, bytes, path) in files {
            if total <= self.max_bytes {
                return;
            }
            self.remove(&path);
            total -= bytes;
        }
    }
}

// === impl Part ===

impl Part {
    /// The file, for a child to write to.
    pub(crate) fn file(&self) -> io::Result<File> {
        self.file.try_clone()
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        // It is not there any more if it was kept.
        let _ = fs::remove_file(&self.path);
    }
}

/// Whether only this process's user can write into a folder.
fn check_private(folder: &Path) -> Result<(), String> {
    let metadata = fs::metadata(folder).map_err(|e| e.to_string())?;
    let mode = metadata.mode() & 0o777;
    if mode & 0o022 != 0 {
        return Err(format!("others may write to it (mode {mode:o}): run chmod 700 on it"));
    }
    if metadata.uid() != rustix::process::geteuid().as_raw() {
        return Err(format!("it belongs to another user (uid {})", metadata.uid()));
    }
    Ok(())
}

#[cfg(test)]
mod tests;

//! Compiled code on disk. All plugins with the same component map the same file, also after a restart of the
//! host.
//!
//! The host runs the code in the folder, so **a user who can write to the folder controls the host**.
//! Therefore:
//!
//! - The folder belongs to the host's user, and no other user can write to it. Its files have mode 600.
//!   Before each use the store checks this again, without following links, and does not use a file that fails
//!   the check.
//! - A file's name is derived from the component's digest and the engine's compatibility ([`EngineTag`]), so
//!   that the store never confuses two files.
//! - A second file has the digest of the code, and is written after it. The store compiles truncated or
//!   damaged code again. Beside the digest are the inode, size and times of the file that it was computed
//!   from. While the system reports the same ones, the code is not read again, which would take longer than
//!   everything else: every write to the file changes them. Damage of the disk itself remains unnoticed until
//!   then.
//!
//! This digest is not a signature. A user who can write to the folder as the host's user can write both
//! files, and can also change the host itself. Do not share the folder with users who are trusted less than
//! the host. Root can always write to it.
//!
//! A mapped file stays mapped after its removal. The store creates and removes files, and never changes one.

mod mapped;

use std::{
    collections::{HashSet, hash_map::RandomState},
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

/// The extension of a file of code.
const CODE: &str = "code";
/// The extension of the file with the code's digest.
const SUM: &str = "sum";
/// The extension of an unfinished file.
const PART: &str = "part";

/// The length of a digest in a file.
const SUM_BYTES: usize = 32;

/// The age at which an unfinished file counts as left over.
const ABANDONED: Duration = Duration::from_secs(6 * 3600);

/// The folder with compiled code.
#[derive(Debug)]
pub(crate) struct CodeStore {
    folder: PathBuf,
    /// The folder that is removed with the engine, if no code is stored.
    temporary: Option<TempDir>,
    max_bytes: u64,
    engine_tag: EngineTag,
    parts: AtomicU64,
    /// How often code was read for its digest.
    n_digests: AtomicU64,
}

/// A file that code is written to. Dropping it removes the file.
#[derive(Debug)]
pub(crate) struct Part {
    path: PathBuf,
    file: File,
}

// === impl CodeStore ===

impl CodeStore {
    /// Stores code in a folder, which is created if missing.
    pub(crate) fn open(folder: &Path, max_bytes: u64, engine_tag: EngineTag) -> Result<Self, String> {
        DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(|e| e.to_string())?;
        let folder = folder.canonicalize().map_err(|e| e.to_string())?;
        check_private(&folder)?;
        // A subfolder, so that this version of the host does not touch files of other versions.
        let folder = folder.join("code");
        DirBuilder::new().recursive(true).mode(0o700).create(&folder).map_err(|e| e.to_string())?;
        check_private(&folder)?;
        Ok(Self {
            folder,
            temporary: None,
            max_bytes,
            engine_tag,
            parts: AtomicU64::new(0),
            n_digests: AtomicU64::new(0),
        })
    }

    /// Stores no code: each file is removed after it was mapped.
    pub(crate) fn temporary(engine_tag: EngineTag) -> Result<Self, String> {
        let temporary =
            tempfile::Builder::new().prefix("oarlock-code-").tempdir().map_err(|e| e.to_string())?;
        let folder = temporary.path().to_owned();
        Ok(Self {
            folder,
            temporary: Some(temporary),
            max_bytes: 0,
            engine_tag,
            parts: AtomicU64::new(0),
            n_digests: AtomicU64::new(0),
        })
    }

    /// Returns the folder, for messages.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    pub(crate) fn engine_tag(&self) -> EngineTag {
        self.engine_tag
    }

    /// Maps the code of a component. Returns `None` if there is no code, or it cannot be used.
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
            tracing::warn!(file = %path.display(), %error, "compiled code cannot be used; the component is compiled again");
            self.remove(&path);
        }
        loaded.ok()
    }

    /// Creates an unfinished file.
    pub(crate) fn part(&self) -> io::Result<Part> {
        let number = self.parts.fetch_add(1, Ordering::Relaxed);
        // Another host may have the same process id: in containers each host has 1, and they may share the
        // folder.
        let random = RandomState::new().build_hasher().finish();
        let path = self.folder.join(format!("{}-{number}-{random:016x}.{PART}", std::process::id()));
        let file = OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(&path)?;
        Ok(Part { path, file })
    }

    /// Maps code that was just written, and stores it unless the store is temporary. Then removes the least
    /// recently used code beyond the limit, `in_use` last.
    pub(crate) fn keep(
        &self,
        engine: &wasmtime::Engine,
        component: &Digest,
        mut part: Part,
        in_use: &[Digest],
    ) -> Result<wasmtime::component::Component, String> {
        if self.temporary.is_some() {
            return mapped::map(engine, &part.path).map_err(|e| format!("{e:#}"));
        }
        let path = self.path(component, CODE);
        let kept = (|| {
            let sum = self.sum(component, &mut part.file)?;
            part.file.sync_all()?;
            // First the code, which is not used without its digest. A rename changes the file's times.
            fs::rename(&part.path, &path)?;
            self.write_sum(component, &sum, &self.stamp(component, &part.file)?)
        })();
        let from = match &kept {
            Ok(()) => &path,
            Err(error) => {
                tracing::warn!(folder = %self.folder.display(), %error, "compiled code cannot be stored");
                if part.path.exists() { &part.path } else { &path }
            }
        };
        let mapped = mapped::map(engine, from).map_err(|e| format!("{e:#}"));
        self.evict(in_use);
        mapped
    }

    fn load_from(
        &self,
        engine: &wasmtime::Engine,
        component: &Digest,
        path: &Path,
    ) -> io::Result<wasmtime::component::Component> {
        let mut wanted = Vec::new();
        let mut beside = self.open_private(&self.path(component, SUM))?;
        io::Read::by_ref(&mut beside).take(256).read_to_end(&mut wanted)?;
        let mut file = self.open_private(path)?;
        let stamp = self.stamp(component, &file)?;
        let (sum, recorded) = wanted.split_at_checked(SUM_BYTES).unwrap_or_default();
        if recorded != stamp {
            // Written to, or copied to another disk.
            let found = self.sum(component, &mut file)?;
            if found.as_slice() != sum {
                return Err(io::Error::other("the file is damaged"));
            }
            // Without the new times the next start reads the code again, nothing else.
            let _ = self.write_sum(component, &found, &stamp);
        }
        // The least recently used code is evicted first. An error here does not prevent the use of the code.
        let _ = beside.set_modified(SystemTime::now());
        mapped::map(engine, path).map_err(|e| io::Error::other(format!("{e:#}")))
    }

    /// Notes that code is in use: the least recently used code is evicted first.
    pub(crate) fn touch(&self, component: &Digest) {
        // Not the code itself: its times say whether it changed. Without the note it may be compiled again.
        let file = File::open(self.path(component, SUM));
        let _ = file.and_then(|file| file.set_modified(SystemTime::now()));
    }

    /// Opens a file if only this user can read and write it.
    fn open_private(&self, path: &Path) -> io::Result<File> {
        let found = fs::symlink_metadata(path)?;
        let file = File::open(path)?;
        let opened = file.metadata()?;
        let own = fs::metadata(&self.folder)?.uid();
        let is_private = opened.is_file()
            && (found.dev(), found.ino()) == (opened.dev(), opened.ino())
            && opened.uid() == own
            && opened.mode() & 0o077 == 0;
        if is_private { Ok(file) } else { Err(io::Error::other("other users may read or write the file")) }
    }

    /// Writes the digest of the code, and the state of the file that has it.
    fn write_sum(&self, component: &Digest, sum: &[u8; SUM_BYTES], stamp: &[u8]) -> io::Result<()> {
        let mut beside = self.part()?;
        io::Write::write_all(&mut beside.file, sum)?;
        io::Write::write_all(&mut beside.file, stamp)?;
        fs::rename(&beside.path, self.path(component, SUM))
    }

    /// Returns the state of a component's file of code: its device, inode, size, time of modification and
    /// time of change.
    fn stamp(&self, component: &Digest, file: &File) -> io::Result<Vec<u8>> {
        let metadata = file.metadata()?;
        let numbers = [
            metadata.dev(),
            metadata.ino(),
            metadata.size(),
            metadata.mtime().cast_unsigned(),
            metadata.mtime_nsec().cast_unsigned(),
            metadata.ctime().cast_unsigned(),
            metadata.ctime_nsec().cast_unsigned(),
        ];
        let numbers = numbers.iter().flat_map(|number| number.to_le_bytes());
        Ok(component.bytes().iter().chain(&self.engine_tag.0).copied().chain(numbers).collect())
    }

    /// Returns the digest of the code and its component.
    fn sum(&self, component: &Digest, code: &mut File) -> io::Result<[u8; SUM_BYTES]> {
        self.n_digests.fetch_add(1, Ordering::Relaxed);
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
        // Another process may have removed them.
        let _ = fs::remove_file(code.with_extension(SUM));
        let _ = fs::remove_file(code);
    }

    /// Removes the least recently used code until the rest is within the limit: of all versions of the
    /// engine, and of all hosts that use the folder. Code in use is removed last; it stays mapped.
    fn evict(&self, in_use: &[Digest]) {
        let Ok(entries) = fs::read_dir(&self.folder) else { return };
        let in_use: HashSet<_> = in_use.iter().map(|component| self.path(component, CODE)).collect();
        let mut files = Vec::new();
        for entry in entries.flatten() {
            let path = entry.path();
            let Ok(metadata) = entry.metadata() else { continue };
            let modified = |path: &Path| fs::metadata(path).and_then(|it| it.modified());
            let used = metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH);
            match path.extension().and_then(|it| it.to_str()) {
                Some(CODE) => {
                    let used = modified(&path.with_extension(SUM)).unwrap_or(used);
                    files.push((in_use.contains(&path), used, metadata.len(), path));
                }
                Some(PART | SUM)
                    if !path.with_extension(CODE).exists()
                        && used.elapsed().is_ok_and(|age| age > ABANDONED) =>
                {
                    let _ = fs::remove_file(path);
                }
                _ => {}
            }
        }
        let mut total: u64 = files.iter().map(|(_, _, bytes, _)| bytes).sum();
        files.sort();
        for (_, _, bytes, path) in files {
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
    /// Returns a handle of the file, for a child process to write to.
    pub(crate) fn file(&self) -> io::Result<File> {
        self.file.try_clone()
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        // It was renamed if the code is stored.
        let _ = fs::remove_file(&self.path);
    }
}

/// Checks that only this process's user can write to a folder.
fn check_private(folder: &Path) -> Result<(), String> {
    let metadata = fs::metadata(folder).map_err(|e| e.to_string())?;
    let mode = metadata.mode() & 0o777;
    if mode & 0o022 != 0 {
        return Err(format!("other users may write to it (mode {mode:o}): run chmod 700 on it"));
    }
    if metadata.uid() != rustix::process::geteuid().as_raw() {
        return Err(format!("it belongs to another user (uid {})", metadata.uid()));
    }
    Ok(())
}

#[cfg(test)]
mod tests;

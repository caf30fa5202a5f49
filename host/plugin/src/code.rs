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
//! A third kind of file records which component a file has ([`known`]), so that a component whose code is
//! stored is not read again at each load.
//!
//! A mapped file stays mapped after its removal. The store creates and removes files, and never changes one.

mod disk;
mod evict;
mod known;
mod mapped;
mod part;

use std::{
    collections::hash_map::RandomState,
    fs::{self, DirBuilder, File},
    hash::{BuildHasher as _, Hasher as _},
    io::{self, Read as _},
    os::unix::fs::{DirBuilderExt as _, MetadataExt as _},
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::SystemTime,
};

use sha2::{Digest as _, Sha256};
use tempfile::TempDir;

use self::disk::{Disk, SystemDisk, is_full};
pub(crate) use self::{
    known::Known,
    part::{InMemory, Part},
};
use crate::{
    compiler::EngineTag,
    component::{Digest, FileState},
};

/// The extension of a file of code.
const CODE: &str = "code";
/// The extension of the file with the code's digest.
const SUM: &str = "sum";
/// The extension of an unfinished file.
const PART: &str = "part";

/// How much is read or written at once.
const BUFFER_BYTES: usize = 256 << 10;

/// The length of a digest in a file.
const SUM_BYTES: usize = 32;

/// The folder with compiled code.
#[derive(Debug)]
pub(crate) struct CodeStore {
    folder: PathBuf,
    /// The folder that is removed with the engine, if no code is stored.
    temporary: Option<TempDir>,
    max_bytes: u64,
    engine_tag: EngineTag,
    disk: Box<dyn Disk>,
    /// The bytes of code in memory.
    in_memory: Arc<AtomicU64>,
    parts: AtomicU64,
    /// How often code was read for its digest.
    n_digests: AtomicU64,
}

/// Code that was written.
pub(crate) struct Kept {
    pub(crate) code: wasmtime::component::Component,
    /// Why it is not stored, if it is not: the next host compiles it again.
    pub(crate) trouble: Option<String>,
    /// Its share of the memory for code, if it is not on disk.
    pub(crate) in_memory: Option<InMemory>,
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
        Ok(Self::new(folder, None, max_bytes, engine_tag))
    }

    /// Stores no code: each file is removed after it was mapped.
    pub(crate) fn temporary(engine_tag: EngineTag) -> Result<Self, String> {
        let temporary =
            tempfile::Builder::new().prefix("oarlock-code-").tempdir().map_err(|e| e.to_string())?;
        let folder = temporary.path().to_owned();
        Ok(Self::new(folder, Some(temporary), 0, engine_tag))
    }

    fn new(folder: PathBuf, temporary: Option<TempDir>, max_bytes: u64, engine_tag: EngineTag) -> Self {
        Self {
            folder,
            temporary,
            max_bytes,
            engine_tag,
            disk: Box::new(SystemDisk),
            in_memory: Arc::default(),
            parts: AtomicU64::new(0),
            n_digests: AtomicU64::new(0),
        }
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
            evict::remove(&path);
        }
        loaded.ok()
    }

    /// Writes code of this length to a file.
    ///
    /// On a full disk, code that is not `in_use` is removed once. If that does not help, the file is in
    /// memory. The error is [`io::ErrorKind::UnexpectedEof`] if the code ends early.
    pub(crate) fn receive(
        &self,
        length: u64,
        code: &mut dyn io::Read,
        in_use: &[Digest],
    ) -> io::Result<Part> {
        let mut part = self.part_for(length, in_use)?;
        let mut buffer = vec![0; BUFFER_BYTES];
        let mut left = length;
        while left > 0 {
            let most = usize::try_from(left).map_or(BUFFER_BYTES, |left| left.min(BUFFER_BYTES));
            let n = code.read(&mut buffer[..most])?;
            if n == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            self.append(&mut part, &buffer[..n], in_use)?;
            left -= n as u64;
        }
        Ok(part)
    }

    /// Creates a file for so many bytes.
    fn part_for(&self, wanted: u64, in_use: &[Digest]) -> io::Result<Part> {
        match self.part(wanted) {
            Err(error) if is_full(&error) => {
                let again = if self.make_room(wanted, in_use) { self.part(wanted) } else { Err(error) };
                again.or_else(|_| Part::in_memory(wanted, &self.in_memory))
            }
            part => part,
        }
    }

    fn append(&self, part: &mut Part, mut bytes: &[u8], in_use: &[Digest]) -> io::Result<()> {
        while !bytes.is_empty() {
            let written = match part.is_on_disk() {
                true => self.disk.write(&part.file, bytes),
                false => io::Write::write(&mut part.file, bytes),
            };
            match written {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(n) => bytes = &bytes[n..],
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if is_full(&error) && part.is_on_disk() => self.free(part, in_use)?,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Maps code that was just written, and stores it unless the store is temporary or the disk is full. Then
    /// removes the least recently used code beyond the limit, `in_use` last.
    pub(crate) fn keep(
        &self,
        engine: &wasmtime::Engine,
        component: &Digest,
        mut part: Part,
        in_use: &[Digest],
    ) -> Result<Kept, String> {
        let path = self.path(component, CODE);
        let mut trouble = None;
        if self.temporary.is_none() && part.is_on_disk() {
            let sum = self.sum(component, &mut part.file).map_err(|error| error.to_string())?;
            trouble = match self.store(component, &mut part, &sum, in_use) {
                Ok(()) => None,
                // Neither the disk nor the memory for code has a place for it.
                Err(error) if is_full(&error) && part.is_on_disk() && part.path.exists() => {
                    return Err(error.to_string());
                }
                Err(error) => Some(error.to_string()),
            };
            let is_whole = part.is_on_disk() || self.sum(component, &mut part.file).is_ok_and(|it| it == sum);
            if !is_whole {
                return Err("the disk is full, and has lost a part of the code".to_owned());
            }
        }
        if !part.is_on_disk() {
            trouble = trouble.or_else(|| Some("the disk is full".to_owned()));
        }
        let from = if part.is_on_disk() && !part.path.exists() { &path } else { &part.path };
        let mapped = mapped::map(engine, from).map_err(|e| format!("{e:#}"));
        if self.temporary.is_none() {
            self.evict(in_use);
        }
        Ok(Kept { code: mapped?, trouble, in_memory: part.in_memory.take() })
    }

    /// Stores code under its component's digest, or moves it to memory if the disk is full.
    fn store(
        &self,
        component: &Digest,
        part: &mut Part,
        sum: &[u8; SUM_BYTES],
        in_use: &[Digest],
    ) -> io::Result<()> {
        while let Err(error) = self.disk.sync(&part.file) {
            if !is_full(&error) {
                return Err(error);
            }
            self.free(part, in_use)?;
            if !part.is_on_disk() {
                return Err(error);
            }
        }
        // First the code, which is not used without its digest. A rename changes the file's times.
        part.rename(&self.path(component, CODE))?;
        self.write_sum(component, sum, &self.stamp(component, &part.file)?)
    }

    /// Makes room for a file on a full disk: removes code that is not in use, or moves the file to memory if
    /// that was done before.
    fn free(&self, part: &mut Part, in_use: &[Digest]) -> io::Result<()> {
        if !std::mem::replace(&mut part.made_room, true) && self.make_room(part.wanted, in_use) {
            return Ok(());
        }
        part.move_to_memory(&self.in_memory)
    }

    /// Creates a file on disk.
    fn part(&self, wanted: u64) -> io::Result<Part> {
        let number = self.parts.fetch_add(1, Ordering::Relaxed);
        // Another host may have the same process id: in containers each host has 1, and they may share the
        // folder.
        let random = RandomState::new().build_hasher().finish();
        let path = self.folder.join(format!("{}-{number}-{random:016x}.{PART}", std::process::id()));
        let file = self.disk.create(&path)?;
        Ok(Part::new(path, file, wanted))
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
        let beside = self.part(0)?;
        let bytes = [sum.as_slice(), stamp].concat();
        match self.disk.write(&beside.file, &bytes)? {
            n if n == bytes.len() => beside.rename(&self.path(component, SUM)),
            _ => Err(io::ErrorKind::StorageFull.into()),
        }
    }

    /// Returns the state of a component's file of code.
    fn stamp(&self, component: &Digest, file: &File) -> io::Result<Vec<u8>> {
        let state = FileState::of(&file.metadata()?).bytes();
        Ok(component.bytes().iter().chain(&self.engine_tag.0).copied().chain(state).collect())
    }

    /// Returns the digest of the code and its component.
    fn sum(&self, component: &Digest, code: &mut File) -> io::Result<[u8; SUM_BYTES]> {
        self.n_digests.fetch_add(1, Ordering::Relaxed);
        io::Seek::rewind(code)?;
        let mut sum = Sha256::new();
        sum.update(component.bytes());
        sum.update(self.engine_tag.0);
        let mut buffer = vec![0; BUFFER_BYTES];
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

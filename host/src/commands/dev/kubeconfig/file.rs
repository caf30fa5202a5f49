//! Claiming a path for one process: created where nothing is, reused where a process of ours left a file behind.

use std::{
    fs::{self, File, OpenOptions, TryLockError},
    io::{self, ErrorKind, Read, Seek, Write},
    os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt},
    path::Path,
};

use super::{Error, MARKER};

/// A file that this process has written and holds locked.
pub(super) struct Claimed {
    file: File,
}

impl Claimed {
    /// Gives the lock back, as the kernel does for a process that is killed.
    #[cfg(test)]
    pub(super) fn unlock(&self) {
        self.file.unlock().unwrap();
    }
}

/// What stands in the way at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::commands::dev) enum Taken {
    /// A file without our marker.
    Foreign,
    /// A file of another process of ours that runs.
    InUse,
    Symlink,
    Folder,
    /// A FIFO, a socket or a device.
    Special,
}

/// A kubeconfig of ours has a few KB. More than this is not read to find the marker, or to compare.
const LONGEST: u64 = 1 << 20;

/// Writes `text` to a file at `path` that is this process's own.
pub(super) fn claim(path: &Path, folder: &Path, text: &str) -> Result<Claimed, Error> {
    loop {
        match create(path, folder, text) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            created => return Ok(created?),
        }
        if let Some(reused) = reuse(path, text)? {
            return Ok(reused);
        }
        // The process that wrote it has removed it meanwhile.
    }
}

/// Removes the file if it is still what this process wrote; answers whether it was.
pub(super) fn retire(path: &Path, claimed: &Claimed, text: &str) -> io::Result<bool> {
    // Somebody may have removed it already.
    let Some(there) = look(path)? else { return Ok(true) };
    if !is_same(&there, &claimed.file.metadata()?) || there.len() != text.len() as u64 {
        return Ok(false);
    }
    let mut found = Vec::with_capacity(text.len());
    let mut file = &claimed.file;
    file.rewind()?;
    file.take(LONGEST).read_to_end(&mut found)?;
    if found != text.as_bytes() {
        return Ok(false);
    }
    fs::remove_file(path)?;
    Ok(true)
}

/// Makes a file that has its whole text and its lock from the moment that it is at `path`. Fails if anything is there.
fn create(path: &Path, folder: &Path, text: &str) -> io::Result<Claimed> {
    // Only its owner may read it: that is how tempfile makes files.
    let mut beside = tempfile::Builder::new()
        .prefix(".kubeconfig")
        .tempfile_in(folder)
        // Without the name that tempfile has made up.
        .map_err(|error| io::Error::from(error.kind()))?;
    // Where a file system has no locks, the file counts as in use for as long as it is there: see `reuse`.
    let _ = beside.as_file().lock();
    beside.write_all(text.as_bytes())?;
    beside.as_file().sync_all()?;
    let file = beside.persist_noclobber(path).map_err(|error| error.error)?;
    Ok(Claimed { file })
}

/// Takes over a file that a process of ours left behind. Its text is changed in place, under its lock: what somebody
/// puts at the path meanwhile is another file, and stays untouched. None when nothing is there any more.
fn reuse(path: &Path, text: &str) -> Result<Option<Claimed>, Error> {
    let Some(there) = look(path)? else { return Ok(None) };
    let kind = there.file_type();
    if kind.is_symlink() {
        return Err(Error::Taken(Taken::Symlink));
    }
    if kind.is_dir() {
        return Err(Error::Taken(Taken::Folder));
    }
    if kind.is_fifo() || kind.is_socket() || kind.is_char_device() || kind.is_block_device() {
        return Err(Error::Taken(Taken::Special));
    }
    // Neither a link nor a FIFO that takes the file's place meanwhile is waited for or followed.
    let flags = (rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK).bits().cast_signed();
    let mut file = match OpenOptions::new().read(true).write(true).custom_flags(flags).open(path) {
        Ok(file) => file,
        // A file that we may not write is not ours, or its owner does not want it changed.
        Err(error) if error.kind() == ErrorKind::PermissionDenied => {
            return Err(Error::Taken(Taken::Foreign));
        }
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    match file.try_lock() {
        Ok(()) if is_ours(&mut file)? => {}
        Err(TryLockError::WouldBlock | TryLockError::Error(_)) if is_ours(&mut file)? => {
            return Err(Error::Taken(Taken::InUse));
        }
        _ => return Err(Error::Taken(Taken::Foreign)),
    }
    let is_there = |file: &File| -> io::Result<bool> {
        let metadata = file.metadata()?;
        Ok(look(path)?.is_some_and(|there| is_same(&there, &metadata)))
    };
    // Between opening and locking, the process that wrote it may have removed it.
    if !is_there(&file)? {
        return Ok(None);
    }
    file.set_permissions(fs::Permissions::from_mode(0o600))?;
    file.set_len(0)?;
    file.rewind()?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    if !is_there(&file)? {
        return Err(Error::Taken(Taken::Foreign));
    }
    Ok(Some(Claimed { file }))
}

/// Looks at what is at the path itself, if anything is.
fn look(path: &Path) -> io::Result<Option<fs::Metadata>> {
    match fs::symlink_metadata(path) {
        Ok(there) => Ok(Some(there)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

fn is_ours(file: &mut File) -> io::Result<bool> {
    let metadata = file.metadata()?;
    if !metadata.is_file() || metadata.len() > LONGEST {
        return Ok(false);
    }
    let mut beginning = Vec::new();
    file.rewind()?;
    file.take(MARKER.len() as u64).read_to_end(&mut beginning)?;
    Ok(beginning == MARKER.as_bytes())
}

fn is_same(one: &fs::Metadata, other: &fs::Metadata) -> bool {
    one.dev() == other.dev() && one.ino() == other.ino()
}

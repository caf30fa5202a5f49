//! Claims a path for one process: creates the file, or reuses a file that an earlier `oarlock dev` left
//! behind.

use std::{
    fs::{self, File, OpenOptions, TryLockError},
    io::{self, ErrorKind, Read, Seek, Write},
    os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt},
    path::Path,
};

use super::{Error, MARKER};

/// A file that this process has written and locked.
pub(super) struct Claimed {
    file: File,
}

impl Claimed {
    /// Releases the lock, as the kernel does for a killed process.
    #[cfg(test)]
    pub(super) fn unlock(&self) {
        self.file.unlock().unwrap();
    }
}

/// The kind of an existing file that is not replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::commands::dev) enum Taken {
    /// A file without the marker.
    Foreign,
    /// A file of another `oarlock dev` that is running.
    InUse,
    Symlink,
    Folder,
    /// A FIFO, a socket or a device.
    Special,
}

/// The maximum size that is read to find the marker, or to compare. A kubeconfig of `dev` has a few KB.
const LONGEST: u64 = 1 << 20;

/// Writes `text` to a file at `path` and locks it for this process.
pub(super) fn claim(path: &Path, folder: &Path, text: &str) -> Result<Claimed, Error> {
    loop {
        match create(path, folder, text) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            created => return Ok(created?),
        }
        if let Some(reused) = reuse(path, text)? {
            return Ok(reused);
        }
        // Its process has removed the file meanwhile.
    }
}

/// Removes the file if it still has the text that this process wrote. Returns false if it has not.
pub(super) fn retire(path: &Path, claimed: &Claimed, text: &str) -> io::Result<bool> {
    // The file may have been removed already.
    let Some(there) = metadata_at(path)? else { return Ok(true) };
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

/// Creates a file that is complete and locked when it appears at `path`. Fails if the path exists.
fn create(path: &Path, folder: &Path, text: &str) -> io::Result<Claimed> {
    // Only its owner may read it, as all files that tempfile creates.
    let mut beside = tempfile::Builder::new()
        .prefix(".kubeconfig")
        .tempfile_in(folder)
        // Without the random name of the temporary file.
        .map_err(|error| io::Error::from(error.kind()))?;
    // On a file system without locks the file counts as in use as long as it exists: see `reuse`.
    let _ = beside.as_file().lock();
    beside.write_all(text.as_bytes())?;
    beside.as_file().sync_all()?;
    let file = beside.persist_noclobber(path).map_err(|error| error.error)?;
    Ok(Claimed { file })
}

/// Reuses a file that an earlier process left behind. Its text is replaced in place, under its lock: a file
/// that another program puts at the path meanwhile stays unchanged. Returns `None` if the path does not exist
/// any more.
fn reuse(path: &Path, text: &str) -> Result<Option<Claimed>, Error> {
    let Some(there) = metadata_at(path)? else { return Ok(None) };
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
    // Does not follow a link and does not wait for a FIFO that replaced the file meanwhile.
    let flags = (rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK).bits().cast_signed();
    let mut file = match OpenOptions::new().read(true).write(true).custom_flags(flags).open(path) {
        Ok(file) => file,
        // A file that this user may not write is foreign, or protected by its owner.
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
        Ok(metadata_at(path)?.is_some_and(|there| is_same(&there, &metadata)))
    };
    // Between opening and locking, its process may have removed it.
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

/// Returns the metadata of the path itself, if it exists.
fn metadata_at(path: &Path) -> io::Result<Option<fs::Metadata>> {
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

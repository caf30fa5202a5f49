//! Reads regular files of bounded length, completely or not at all.
//!
//! Other kinds of files are errors: opening a FIFO waits for another process, and `/dev/zero` has no end. A
//! file system that does not respond still blocks, so call these functions outside the runtime's own threads.

use std::fs::{File, FileType, Metadata, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::time::{Duration, SystemTime};

use rustix::fs::OFlags;

/// The precision that whole seconds of a time stamp lack.
const SECOND: Duration = Duration::from_secs(1);

/// Why a file was not read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The system returned an error.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The path is not a regular file.
    #[error("it is {0}, and only regular files are read")]
    NotRegular(&'static str),
    /// The file is longer than the limit.
    #[error("it has {bytes} bytes, more than the {limit} allowed")]
    TooLarge {
        /// Its length.
        bytes: u64,
        /// The limit.
        limit: u64,
    },
    /// Another process changed the file meanwhile.
    #[error("it changed while it was read: is the program that writes it still running?")]
    Changing,
}

/// The metadata by which a changed file is recognised: versions with equal stamps count as the same.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Stamp {
    modified: (i64, i64),
    length: u64,
    inode: u64,
    device: u64,
}

/// Reads a regular file of at most `limit` bytes.
pub fn read(path: &Path, limit: u64) -> Result<Vec<u8>, Error> {
    read_with_metadata(path, limit).map(|(bytes, _)| bytes)
}

/// Does the same as [`read`]; also returns the metadata after the last byte was read.
pub fn read_with_metadata(path: &Path, limit: u64) -> Result<(Vec<u8>, Metadata), Error> {
    let (file, before) = open_bounded(path, limit)?;
    // One more byte, so that the end is found without growing.
    let mut bytes = Vec::with_capacity(usize::try_from(before.len() + 1).unwrap_or_default());
    (&file).take(limit + 1).read_to_end(&mut bytes)?;
    let after = file.metadata()?;
    check(&after, limit)?;
    let is_whole = bytes.len() as u64 == after.len() && Stamp::from(&before) == Stamp::from(&after);
    if is_whole { Ok((bytes, after)) } else { Err(Error::Changing) }
}

/// Opens a regular file of any length.
pub fn open(path: &Path) -> Result<File, Error> {
    open_bounded(path, u64::MAX).map(|(file, _)| file)
}

fn open_bounded(path: &Path, limit: u64) -> Result<(File, Metadata), Error> {
    // Check the kind before the file is opened: opening a device may have effects.
    check(&std::fs::metadata(path)?, limit)?;
    // The path may point to another file by now: with these flags opening a FIFO does not wait for a writer.
    let flags = (OFlags::NONBLOCK | OFlags::NOCTTY).bits().cast_signed();
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    let metadata = file.metadata()?;
    check(&metadata, limit)?;
    Ok((file, metadata))
}

fn check(metadata: &Metadata, limit: u64) -> Result<(), Error> {
    if !metadata.is_file() {
        return Err(Error::NotRegular(name_of(metadata.file_type())));
    }
    match metadata.len() {
        bytes if bytes > limit => Err(Error::TooLarge { bytes, limit }),
        _ => Ok(()),
    }
}

fn name_of(kind: FileType) -> &'static str {
    if kind.is_dir() {
        "a folder"
    } else if kind.is_fifo() {
        "a FIFO"
    } else if kind.is_socket() {
        "a socket"
    } else {
        "a device"
    }
}

// === impl Error ===

impl Error {
    /// Returns whether the file does not exist.
    #[must_use]
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::Io(error) if error.kind() == io::ErrorKind::NotFound)
    }
}

// === impl Stamp ===

impl Stamp {
    /// Returns the stamp of a file; none if it does not exist or its metadata cannot be read.
    #[must_use]
    pub fn of(path: &Path) -> Option<Self> {
        std::fs::metadata(path).ok().as_ref().map(Self::from)
    }

    /// Returns whether the file was modified less than this long ago by the wall clock, or in the future.
    #[must_use]
    pub fn is_younger_than(&self, age: Duration) -> bool {
        let Ok(seconds) = u64::try_from(self.modified.0) else { return false };
        let written = SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(seconds));
        written.is_some_and(|written| written.elapsed().map_or(true, |elapsed| elapsed < age + SECOND))
    }
}

impl From<&Metadata> for Stamp {
    fn from(metadata: &Metadata) -> Self {
        Self {
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            length: metadata.len(),
            inode: metadata.ino(),
            device: metadata.dev(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_kinds_of_files_are_errors_and_block_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        std::fs::write(at("file"), b"12345").unwrap();
        assert_eq!(read(&at("file"), 5).unwrap(), b"12345");
        let refusal = |path: &Path| read(path, 4).unwrap_err().to_string();
        assert_eq!(refusal(&at("file")), "it has 5 bytes, more than the 4 allowed");
        assert!(std::process::Command::new("mkfifo").arg(at("fifo")).status().unwrap().success());
        assert_eq!(refusal(&at("fifo")), "it is a FIFO, and only regular files are read");
        std::os::unix::fs::symlink(at("fifo"), at("link")).unwrap();
        assert_eq!(refusal(&at("link")), "it is a FIFO, and only regular files are read");
        assert_eq!(refusal(Path::new("/dev/zero")), "it is a device, and only regular files are read");
        assert_eq!(refusal(dir.path()), "it is a folder, and only regular files are read");
        let _socket = std::os::unix::net::UnixListener::bind(at("socket")).unwrap();
        assert_eq!(refusal(&at("socket")), "it is a socket, and only regular files are read");
        std::os::unix::fs::symlink(at("nowhere"), at("dangling")).unwrap();
        assert!(read(&at("dangling"), 4).unwrap_err().is_not_found());
        assert!(matches!(open(&at("link")), Err(Error::NotRegular("a FIFO"))));
        assert_eq!(open(&at("file")).unwrap().metadata().unwrap().len(), 5);
        // The metadata of this regular file has not its real length.
        assert!(matches!(read(Path::new("/proc/self/stat"), 1 << 20), Err(Error::Changing)));
    }

    #[test]
    fn a_file_beyond_the_limit_is_not_read() {
        let dir = tempfile::tempdir().unwrap();
        let file = std::fs::File::create(dir.path().join("sparse")).unwrap();
        file.set_len(1 << 40).unwrap();
        assert!(matches!(read(&dir.path().join("sparse"), 1 << 20), Err(Error::TooLarge { .. })));
    }
}

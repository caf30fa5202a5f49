//! Reading a file that an operator, or a build, put somewhere: a regular file of bounded length, complete.
//!
//! Nothing here waits for another process, as a FIFO does, or reads without an end, as `/dev/zero` does. A file system that does
//! not answer still blocks: call it where the runtime, and the host's end, do not wait for it.

use std::fs::{FileType, Metadata, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::time::{Duration, SystemTime};

use rustix::fs::OFlags;

/// What the seconds of a time stamp leave out.
const SECOND: Duration = Duration::from_secs(1);

/// Why a file was not read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The system refused it.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// It is something else under a file's name.
    #[error("it is {0}, and only regular files are read")]
    NotRegular(&'static str),
    /// It is longer than anything of its sort needs to be.
    #[error("it has {bytes} bytes, more than the {limit} allowed")]
    TooLarge {
        /// What it has.
        bytes: u64,
        /// What it may have.
        limit: u64,
    },
    /// Somebody writes it.
    #[error("it changed while it was read: is the program that writes it still running?")]
    Changing,
}

/// What a file looks like from outside: two versions of it that differ in nothing of this are taken for one.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Stamp {
    modified: (i64, i64),
    length: u64,
    inode: u64,
    device: u64,
}

/// Reads a regular file of at most `limit` bytes.
pub fn read(path: &Path, limit: u64) -> Result<Vec<u8>, Error> {
    // Looked at before it is opened, because opening a device may already do something.
    check(&std::fs::metadata(path)?, limit)?;
    // The path may lead elsewhere by now: opening a FIFO must not wait for who writes it.
    let flags = (OFlags::NONBLOCK | OFlags::NOCTTY).bits().cast_signed();
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    let before = file.metadata()?;
    check(&before, limit)?;
    let mut bytes = Vec::new();
    (&file).take(limit + 1).read_to_end(&mut bytes)?;
    let after = file.metadata()?;
    check(&after, limit)?;
    let is_whole = bytes.len() as u64 == after.len() && Stamp::from(&before) == Stamp::from(&after);
    if is_whole { Ok(bytes) } else { Err(Error::Changing) }
}

fn check(metadata: &Metadata, limit: u64) -> Result<(), Error> {
    if !metadata.is_file() {
        return Err(Error::NotRegular(called(metadata.file_type())));
    }
    match metadata.len() {
        bytes if bytes > limit => Err(Error::TooLarge { bytes, limit }),
        _ => Ok(()),
    }
}

fn called(kind: FileType) -> &'static str {
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
    /// Whether nothing is there.
    #[must_use]
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::Io(error) if error.kind() == io::ErrorKind::NotFound)
    }
}

// === impl Stamp ===

impl Stamp {
    /// Looks at a file; none when there is no such file, or it cannot be looked at.
    #[must_use]
    pub fn of(path: &Path) -> Option<Self> {
        std::fs::metadata(path).ok().as_ref().map(Self::from)
    }

    /// Whether the file was written less than this long ago, by the wall clock; also where it claims to be from the future.
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
    fn only_regular_files_are_read_and_nothing_is_waited_for() {
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
        // A regular file whose length is not known before it is read.
        assert!(matches!(read(Path::new("/proc/self/stat"), 1 << 20), Err(Error::Changing)));
    }

    #[test]
    fn a_huge_file_takes_no_memory() {
        let dir = tempfile::tempdir().unwrap();
        let file = std::fs::File::create(dir.path().join("sparse")).unwrap();
        file.set_len(1 << 40).unwrap();
        assert!(matches!(read(&dir.path().join("sparse"), 1 << 20), Err(Error::TooLarge { .. })));
    }
}

//! The operations on the disk that need space on it. Tests replace them by a disk that is full.

use std::{
    fmt,
    fs::{File, OpenOptions},
    io::{self, Write as _},
    os::unix::fs::OpenOptionsExt as _,
    path::Path,
};

/// A disk that may be full.
pub(super) trait Disk: fmt::Debug + Send + Sync {
    /// Creates a file that only this user can read and write.
    fn create(&self, path: &Path) -> io::Result<File>;

    /// Writes some of the bytes. Returns how many.
    fn write(&self, file: &File, bytes: &[u8]) -> io::Result<usize>;

    /// Waits until the file is stored.
    fn sync(&self, file: &File) -> io::Result<()>;
}

/// The disk of the system.
#[derive(Debug)]
pub(super) struct SystemDisk;

// === impl SystemDisk ===

impl Disk for SystemDisk {
    fn create(&self, path: &Path) -> io::Result<File> {
        OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(path)
    }

    fn write(&self, mut file: &File, bytes: &[u8]) -> io::Result<usize> {
        file.write(bytes)
    }

    fn sync(&self, file: &File) -> io::Result<()> {
        file.sync_all()
    }
}

/// Returns whether an error says that there is no space left for this user.
pub(super) fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

//! Code while it is written: to a file beside the others, or to memory when the disk is full.

use std::{
    fs::{self, File},
    io::{self, Seek as _},
    os::fd::AsRawFd as _,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use rustix::fs::{MemfdFlags, memfd_create};

/// The most bytes of code that one host keeps in memory while its disk is full.
pub(crate) const MAX_IN_MEMORY: u64 = 256 << 20;

/// A file that code is written to. Dropping it removes the file.
#[derive(Debug)]
pub(crate) struct Part {
    pub(super) path: PathBuf,
    pub(super) file: File,
    /// The bytes that it will have.
    pub(super) wanted: u64,
    /// Code was removed to make room for it.
    pub(super) made_room: bool,
    /// Its share of the memory for code. `None` while the file is on disk.
    pub(super) in_memory: Option<InMemory>,
}

/// A share of the memory for code, which is given back when it is dropped.
#[derive(Debug)]
pub(crate) struct InMemory {
    total: Arc<AtomicU64>,
    bytes: u64,
}

// === impl Part ===

impl Part {
    pub(super) fn new(path: PathBuf, file: File, wanted: u64) -> Self {
        Self { path, file, wanted, made_room: false, in_memory: None }
    }

    /// Creates an empty file in memory.
    pub(super) fn in_memory(wanted: u64, total: &Arc<AtomicU64>) -> io::Result<Self> {
        let share = InMemory::new(wanted, total)?;
        let file = File::from(memfd_create("oarlock-code", MemfdFlags::CLOEXEC)?);
        let path = format!("/proc/self/fd/{}", file.as_raw_fd()).into();
        Ok(Self { path, file, wanted, made_room: true, in_memory: Some(share) })
    }

    /// Moves what was written to memory.
    pub(super) fn move_to_memory(&mut self, total: &Arc<AtomicU64>) -> io::Result<()> {
        let mut there = Self::in_memory(self.wanted, total)?;
        self.file.rewind()?;
        io::copy(&mut self.file, &mut there.file)?;
        // The file on disk is removed with the old value.
        *self = there;
        Ok(())
    }

    pub(super) fn is_on_disk(&self) -> bool {
        self.in_memory.is_none()
    }

    /// Renames the file.
    pub(super) fn rename(&self, to: &Path) -> io::Result<()> {
        fs::rename(&self.path, to)
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        // It was renamed if the code is stored.
        if self.is_on_disk() {
            let _ = fs::remove_file(&self.path);
        }
    }
}

// === impl InMemory ===

impl InMemory {
    fn new(bytes: u64, total: &Arc<AtomicU64>) -> io::Result<Self> {
        let add = |total: u64| total.checked_add(bytes).filter(|total| *total <= MAX_IN_MEMORY);
        match total.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add) {
            Ok(_) => Ok(Self { total: Arc::clone(total), bytes }),
            Err(_) => Err(io::Error::new(
                io::ErrorKind::StorageFull,
                format!(
                    "the disk is full, and with it the {} MiB of memory that replace it",
                    MAX_IN_MEMORY >> 20
                ),
            )),
        }
    }
}

impl Drop for InMemory {
    fn drop(&mut self) {
        self.total.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

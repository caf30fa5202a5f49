//! Files of components, and how a file that was read before is recognised without reading it again.

use std::{
    fs::Metadata,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use serde::{Deserialize, Serialize};

/// The age of its last change from which a file's state identifies its content.
///
/// File systems round times: within one tick of their clock a second change leaves no trace. The coarsest
/// common clock ticks every two seconds.
const SETTLED: Duration = Duration::from_secs(2);

/// What the system reports about a file. Every change of a file's content changes it, or its time of change
/// is less than [`SETTLED`] ago.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FileState {
    device: u64,
    inode: u64,
    size: u64,
    /// Seconds and nanoseconds.
    modified: (i64, i64),
    /// The same of the last change of content or metadata, which no program can set.
    changed: (i64, i64),
}

/// A file with a component, in the state in which it was looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ComponentFile {
    pub(crate) path: PathBuf,
    pub(crate) state: FileState,
    seen_at: SystemTime,
}

// === impl ComponentFile ===

impl ComponentFile {
    /// Describes the file at this path, which has this metadata now.
    #[must_use]
    pub fn new(path: &Path, metadata: &Metadata) -> Self {
        Self { path: path.to_owned(), state: FileState::of(metadata), seen_at: SystemTime::now() }
    }

    /// Returns the same file, looked at after its state had settled.
    #[cfg(test)]
    pub(crate) fn seen_later(self) -> Self {
        Self { seen_at: self.seen_at + SETTLED + Duration::from_secs(1), ..self }
    }

    /// Returns whether the file still has the state in which it was looked at.
    #[must_use]
    pub fn is_unchanged(&self, metadata: &Metadata) -> bool {
        self.state == FileState::of(metadata)
    }

    /// Returns whether every later change of the file changes its state.
    pub(crate) fn is_settled(&self) -> bool {
        let (seconds, nanoseconds) = self.state.changed.max(self.state.modified);
        let (Ok(seconds), Ok(nanoseconds)) = (u64::try_from(seconds), u32::try_from(nanoseconds)) else {
            return false;
        };
        let changed = SystemTime::UNIX_EPOCH.checked_add(Duration::new(seconds, nanoseconds));
        changed.is_some_and(|changed| self.seen_at.duration_since(changed).is_ok_and(|age| age > SETTLED))
    }
}

// === impl FileState ===

impl FileState {
    pub(crate) fn of(metadata: &Metadata) -> Self {
        Self {
            device: metadata.dev(),
            inode: metadata.ino(),
            size: metadata.size(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        }
    }

    /// Returns the numbers as bytes.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let Self { device, inode, size, modified, changed } = *self;
        let signed = [modified.0, modified.1, changed.0, changed.1];
        let numbers = [device, inode, size].into_iter().chain(signed.map(i64::cast_unsigned));
        numbers.flat_map(u64::to_le_bytes).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};

    use super::*;

    #[test]
    fn the_state_of_a_file_identifies_its_content_two_seconds_after_its_last_change() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("component.wasm");
        fs::write(&path, "one").unwrap();
        let seen = ComponentFile::new(&path, &fs::metadata(&path).unwrap());
        assert!(!seen.is_settled());
        let later = seen.seen_later();
        assert!(later.is_settled());
        // The time of modification can be set, that of the change cannot.
        File::open(&path).unwrap().set_modified(SystemTime::UNIX_EPOCH).unwrap();
        let old = ComponentFile::new(&path, &fs::metadata(&path).unwrap());
        assert!(!old.is_settled());
        let ahead = SystemTime::now() + Duration::from_secs(3_600);
        File::open(&path).unwrap().set_modified(ahead).unwrap();
        let state = FileState::of(&fs::metadata(&path).unwrap());
        assert!(!ComponentFile { state, ..later }.is_settled(), "its time is in the future");
    }
}

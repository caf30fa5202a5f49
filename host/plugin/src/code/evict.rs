//! The removal of code: beyond the limit of the folder, and when the disk is full.

use std::{
    collections::HashSet,
    fs,
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use super::{CODE, CodeStore, PART, SUM, known};
use crate::component::Digest;

/// The age at which an unfinished file counts as left over.
const ABANDONED: Duration = Duration::from_secs(6 * 3600);

/// A file of code. The order is that of their removal: the least recently used one first, but code in use
/// last.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct CodeFile {
    is_in_use: bool,
    used: SystemTime,
    bytes: u64,
    path: PathBuf,
}

// === impl CodeStore ===

impl CodeStore {
    /// Removes the least recently used code until the rest is within the limit: of all versions of the
    /// engine, and of all hosts that use the folder. Code in use is removed last; it stays mapped.
    pub(super) fn evict(&self, in_use: &[Digest]) {
        let files = self.code_files(in_use);
        let mut total: u64 = files.iter().map(|it| it.bytes).sum();
        for CodeFile { bytes, path, .. } in files {
            if total <= self.max_bytes {
                return;
            }
            remove(&path);
            total -= bytes;
        }
    }

    /// Removes the least recently used code that is not in use, until so many bytes are free. Returns whether
    /// it removed any.
    pub(super) fn make_room(&self, wanted: u64, in_use: &[Digest]) -> bool {
        if self.temporary.is_some() {
            return false;
        }
        let mut freed = 0;
        for CodeFile { is_in_use, bytes, path, .. } in self.code_files(in_use) {
            // A mapped file keeps its place on the disk.
            if is_in_use || freed > wanted {
                break;
            }
            remove(&path);
            freed += bytes;
        }
        freed > 0
    }

    /// Returns the files of code in the order of their removal. Removes what was left over.
    fn code_files(&self, in_use: &[Digest]) -> Vec<CodeFile> {
        let Ok(entries) = fs::read_dir(&self.folder) else { return Vec::new() };
        let in_use: HashSet<_> = in_use.iter().map(|component| self.path(component, CODE)).collect();
        let (mut files, mut records) = (Vec::new(), Vec::new());
        for entry in entries.flatten() {
            let path = entry.path();
            let Ok(metadata) = entry.metadata() else { continue };
            let modified = |path: &Path| fs::metadata(path).and_then(|it| it.modified());
            let used = metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH);
            match path.extension().and_then(|it| it.to_str()) {
                Some(CODE) => {
                    let used = modified(&path.with_extension(SUM)).unwrap_or(used);
                    let is_in_use = in_use.contains(&path);
                    files.push(CodeFile { is_in_use, used, bytes: metadata.len(), path });
                }
                Some(known::FILE) => records.push((used, path)),
                Some(PART | SUM)
                    if !path.with_extension(CODE).exists()
                        && used.elapsed().is_ok_and(|age| age > ABANDONED) =>
                {
                    let _ = fs::remove_file(path);
                }
                _ => {}
            }
        }
        known::evict(records, known::MAX_RECORDS);
        files.sort();
        files
    }
}

/// Removes code and its digest.
pub(super) fn remove(code: &Path) {
    // Another process may have removed them.
    let _ = fs::remove_file(code.with_extension(SUM));
    let _ = fs::remove_file(code);
}

//! What the store knows about files of components: which component a file has, and the names in it. So a
//! component whose code is stored is loaded without reading its file.
//!
//! A record is used only for a file in exactly the recorded state ([`FileState`]), and is written only for a
//! file that had not changed for a moment when it was read. So each change of a file is noticed: after it,
//! the file has another state.

use std::{
    fs,
    io::{self, Read as _, Write as _},
    path::PathBuf,
    time::SystemTime,
};

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::CodeStore;
use crate::{
    component::{ComponentFile, Digest, FileState},
    inspect::Surface,
};

/// The extension of a record.
pub(super) const FILE: &str = "file";

/// The most records. The oldest ones are removed first.
pub(super) const MAX_RECORDS: usize = 8_192;

/// The maximum size of a record. Longer ones, of components with very many names, are not written.
const MAX_BYTES: u64 = 256 << 10;

/// What the host found in a component's file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Known {
    pub(crate) digest: Digest,
    /// The size of the component.
    pub(crate) bytes: usize,
    pub(crate) surface: Surface,
}

/// The text of a record, behind its digest.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Record {
    path: PathBuf,
    state: FileState,
    digest: String,
    bytes: usize,
    imports: Vec<String>,
    exports: Vec<String>,
}

// === impl CodeStore ===

impl CodeStore {
    /// Returns what the host found in this file when it was in this state.
    pub(crate) fn known(&self, file: &ComponentFile) -> Option<Known> {
        let record = self.read_record(file).ok()?;
        let Record { path, state, digest, bytes, imports, exports } = record;
        let is_it = path == file.path && state == file.state;
        let digest = digest.parse().ok().filter(|_| is_it)?;
        Some(Known { digest, bytes, surface: Surface { imports, exports } })
    }

    /// Records what the host found in a file. Without the record the file is read again, nothing else.
    pub(crate) fn note(&self, file: &ComponentFile, known: &Known) {
        if self.temporary.is_some() || !file.is_settled() {
            return;
        }
        let Known { digest, bytes, surface: Surface { imports, exports } } = known.clone();
        let record = Record {
            path: file.path.clone(),
            state: file.state,
            digest: digest.to_string(),
            bytes,
            imports,
            exports,
        };
        if let Err(error) = self.write_record(file, &record) {
            tracing::debug!(folder = %self.folder.display(), %error, "a component's file cannot be recorded");
        }
    }

    fn read_record(&self, file: &ComponentFile) -> io::Result<Record> {
        if self.temporary.is_some() {
            return Err(io::ErrorKind::NotFound.into());
        }
        let mut text = String::new();
        self.open_private(&self.record(file))?.take(MAX_BYTES).read_to_string(&mut text)?;
        let (sum, record) = text.split_once('\n').ok_or(io::ErrorKind::InvalidData)?;
        if sum != Digest::of(record.as_bytes()).to_string() {
            return Err(io::ErrorKind::InvalidData.into());
        }
        Ok(serde_json::from_str(record)?)
    }

    fn write_record(&self, file: &ComponentFile, record: &Record) -> io::Result<()> {
        let record = serde_json::to_string(record)?;
        let text = format!("{}\n{record}", Digest::of(record.as_bytes()));
        if text.len() as u64 > MAX_BYTES {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        let mut part = self.part(0)?;
        part.file.write_all(text.as_bytes())?;
        part.rename(&self.record(file))
    }

    /// Returns the path of a file's record.
    fn record(&self, file: &ComponentFile) -> PathBuf {
        let mut name = Sha256::new();
        name.update(file.path.as_os_str().as_encoded_bytes());
        name.update(self.engine_tag.0);
        let name: [u8; 32] = name.finalize().into();
        self.folder.join(format!("{}.{FILE}", Digest::from_bytes(name)))
    }
}

/// Removes the oldest records beyond the limit.
pub(super) fn evict(mut records: Vec<(SystemTime, PathBuf)>, most: usize) {
    let surplus = records.len().saturating_sub(most);
    records.sort();
    for (_, path) in records.into_iter().take(surplus) {
        // Another process may have removed it.
        let _ = fs::remove_file(path);
    }
}

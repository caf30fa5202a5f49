//! The versions of a plugin that were rolled back, and are not tried again.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::{Error, StateFolder, VersionId, files};

/// How many versions of a plugin are remembered. The oldest is forgotten first.
const MAX_ENTRIES: usize = 32;

/// The longest list, its file with the line of the checksum, and the longest reason.
const MAX_LIST_BYTES: u64 = 256 << 10;
const MAX_BYTES: u64 = MAX_LIST_BYTES + (4 << 10);
const MAX_REASON: usize = 4 << 10;

/// The versions of one plugin that are not tried, the newest last.
#[derive(Clone, Debug, Default)]
pub(crate) struct Quarantine {
    /// Without a path nothing is kept over a restart.
    path: Option<PathBuf>,
    entries: Vec<Entry>,
}

/// One version.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct Entry {
    /// The [`VersionId`].
    pub(crate) id: String,
    /// The version that the component states.
    pub(crate) version: String,
    /// The digest of the component.
    pub(crate) digest: String,
    /// Why it was rolled back.
    pub(crate) reason: String,
    /// When, in RFC 3339.
    pub(crate) since: String,
}

// === impl StateFolder ===

impl StateFolder {
    /// Reads the quarantine of a plugin. With an error it is empty.
    pub(crate) fn quarantine(&self, plugin: &str, file: &Path) -> (Quarantine, Option<Error>) {
        let Some(folder) = &self.folder else { return (Quarantine::default(), None) };
        let path = folder.join("quarantine").join(Self::name_of(plugin, file));
        let (entries, error) = match read(&path) {
            Ok(entries) => (entries, None),
            Err(error) => (Vec::new(), Some(error)),
        };
        (Quarantine { path: Some(path), entries }, error)
    }
}

fn read(path: &Path) -> Result<Vec<Entry>, Error> {
    let Some(text) = files::read_checked(path, MAX_BYTES)? else { return Ok(Vec::new()) };
    serde_json::from_str(&text).map_err(|error| Error::damaged(path, error.to_string()))
}

// === impl Quarantine ===

impl Quarantine {
    /// Returns why a version is not tried.
    pub(crate) fn find(&self, id: VersionId) -> Option<&Entry> {
        let id = id.to_string();
        self.entries.iter().find(|entry| entry.id == id)
    }

    /// Returns the versions, the newest last.
    pub(crate) fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Adds the versions of a list that are not there.
    pub(crate) fn add_all(&mut self, others: &[Entry]) {
        let missing = others.iter().filter(|it| self.entries.iter().all(|entry| entry.id != it.id));
        let missing: Vec<_> = missing.cloned().collect();
        self.entries.extend(missing);
        self.forget_oldest();
    }

    /// Makes the list this one. Returns whether it was another.
    pub(crate) fn replace(&mut self, entries: &[Entry]) -> bool {
        let is_other = self.differs(entries);
        if is_other {
            self.entries = entries.to_vec();
            self.forget_oldest();
        }
        is_other
    }

    /// Returns whether a list has other versions.
    pub(crate) fn differs(&self, entries: &[Entry]) -> bool {
        let ids = |entries: &[Entry]| entries.iter().map(|it| it.id.clone()).collect::<BTreeSet<_>>();
        ids(&self.entries) != ids(entries)
    }

    /// Adds a version. One that is there already keeps its reason and its time.
    pub(crate) fn add(&mut self, id: VersionId, version: &str, digest: &str, reason: &str, since: String) {
        let id = id.to_string();
        if self.entries.iter().any(|entry| entry.id == id) {
            return;
        }
        let mut end = reason.len().min(MAX_REASON);
        while !reason.is_char_boundary(end) {
            end -= 1;
        }
        let (version, digest, reason) = (version.to_owned(), digest.to_owned(), reason[..end].to_owned());
        self.entries.push(Entry { id, version, digest, reason, since });
        self.forget_oldest();
    }

    fn forget_oldest(&mut self) {
        let surplus = self.entries.len().saturating_sub(MAX_ENTRIES);
        self.entries.drain(..surplus);
    }

    /// Removes all versions, and returns how many there were.
    pub(crate) fn clear(&mut self) -> usize {
        std::mem::take(&mut self.entries).len()
    }

    /// Writes the file. A restart of the host then knows the same versions, or the newest of them if texts of
    /// the plugin make the file too long.
    pub(crate) fn save(&self) -> Result<(), Error> {
        let Some(path) = &self.path else { return Ok(()) };
        if self.entries.is_empty() {
            return match fs::remove_file(path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    Err(Error::io(path, "removed", error))
                }
                _ => Ok(()),
            };
        }
        path.parent().map_or(Ok(()), files::create_folder)?;
        for first in 0..self.entries.len() {
            let text = serde_json::to_string_pretty(&self.entries[first..])
                .map_err(|error| Error::damaged(path, error.to_string()))?;
            if text.len() as u64 <= MAX_LIST_BYTES {
                return files::write_checked(path, &text);
            }
        }
        Ok(())
    }
}

//! What a source referred to last, on disk: a host that starts while a registry is down goes on with it.
//!
//! A record belongs to a source **and** to the credentials that it was fetched with. A Plugin that names the
//! same artifact without the pull secret finds no record, and has to ask the registry.

use std::{
    fs,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};

use crate::{cache::write_atomically, digest::Digest, signature::Evidence};

/// How many records are kept. More than one host has plugins.
const MAX_RECORDS: usize = 4096;
/// The longest record that is read: longer than the most and largest signatures of an artifact, written in
/// JSON with every byte escaped.
const MAX_BYTES: u64 = 64 << 20;

/// What a source referred to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Record {
    /// The source, for people who look at the file.
    pub(crate) source: String,
    /// The component.
    pub(crate) component: Digest,
    /// The manifest, for an artifact of a registry.
    pub(crate) manifest: Option<Digest>,
    /// The signatures that were read.
    #[serde(default)]
    pub(crate) evidence: Vec<Evidence>,
}

/// Names a record.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct RecordKey(Digest);

/// The folder with records.
#[derive(Debug)]
pub(crate) struct Records {
    folder: PathBuf,
}

// === impl RecordKey ===

impl RecordKey {
    /// Returns the key of a source that was fetched with these credentials.
    pub(crate) fn new(source: &str, credentials: &[u8]) -> Self {
        Self(Digest::of(format!("{source}\n{}", Digest::of(credentials)).as_bytes()))
    }
}

// === impl Records ===

impl Records {
    pub(crate) fn new(folder: PathBuf) -> Self {
        Self { folder }
    }

    /// Returns a record. A damaged one counts as missing. Blocks.
    pub(crate) fn read(&self, key: &RecordKey) -> Option<Record> {
        let path = self.path(key);
        let text = (fs::metadata(&path).ok()?.len() <= MAX_BYTES).then(|| fs::read(&path))?;
        serde_json::from_slice(&text.ok()?).ok()
    }

    /// Writes a record. Blocks.
    pub(crate) fn write(&self, key: &RecordKey, record: &Record) -> std::io::Result<()> {
        let path = self.path(key);
        if !path.exists() {
            self.remove_oldest();
        }
        write_atomically(&path, &serde_json::to_vec(record)?)
    }

    fn remove_oldest(&self) {
        let entries = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        let mut records: Vec<_> = entries
            .filter(|entry| Path::new(&entry.file_name()).extension().is_some_and(|it| it == "json"))
            .map(|entry| (entry.metadata().and_then(|it| it.modified()).ok(), entry.path()))
            .collect();
        records.sort();
        for (_, path) in records.iter().take((records.len() + 1).saturating_sub(MAX_RECORDS)) {
            let _ = fs::remove_file(path);
        }
    }

    fn path(&self, key: &RecordKey) -> PathBuf {
        self.folder.join(format!("{}.json", key.0.to_hex()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::signature;

    fn record(component: &[u8]) -> Record {
        Record {
            source: "a.io/b:1".to_owned(),
            component: Digest::of(component),
            manifest: None,
            evidence: Vec::new(),
        }
    }

    #[test]
    fn a_record_belongs_to_source_and_credentials() {
        let dir = tempfile::tempdir().unwrap();
        let records = Records::new(dir.path().to_owned());
        let key = RecordKey::new("a.io/b:1", b"secret");
        records.write(&key, &record(b"a")).unwrap();
        assert_eq!(records.read(&key), Some(record(b"a")));
        for other in [RecordKey::new("a.io/b:1", b""), RecordKey::new("a.io/b:2", b"secret")] {
            assert_eq!(records.read(&other), None);
        }
        records.write(&key, &record(b"b")).unwrap();
        assert_eq!(records.read(&key), Some(record(b"b")));
        fs::write(records.path(&key), "{").unwrap();
        assert_eq!(records.read(&key), None, "a damaged record");
    }

    #[test]
    fn a_record_of_the_most_and_largest_signatures_is_read() {
        let dir = tempfile::tempdir().unwrap();
        let records = Records::new(dir.path().to_owned());
        let longest = vec![1; signature::MAX_BYTES];
        let bundle = Evidence::of_bundle(longest.clone());
        let simple = Evidence::of_simple_signing(&longest, "c2ln");
        let all = [bundle, simple].into_iter().flat_map(|it| vec![it; signature::MAX_SIGNATURES]);
        let record = Record { evidence: all.collect(), ..record(b"a") };
        let key = RecordKey::new("a", b"");
        records.write(&key, &record).unwrap();
        assert_eq!(records.read(&key), Some(record));
    }

    #[test]
    fn records_are_bounded() {
        let dir = tempfile::tempdir().unwrap();
        let records = Records::new(dir.path().to_owned());
        for n in 0..MAX_RECORDS + 3 {
            fs::write(dir.path().join(format!("{n}.json")), "{}").unwrap();
        }
        records.write(&RecordKey::new("a", b""), &record(b"a")).unwrap();
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), MAX_RECORDS);
    }
}

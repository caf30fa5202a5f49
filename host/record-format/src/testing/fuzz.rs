//! The fuzz targets: the functions that read files which people hand to each other. Each target takes any
//! bytes, and panics if a property does not hold.
//!
//! The programs of `host/record-format/fuzz` call these functions, and so do the tests that run the corpus.

use std::io::{self, Read};

use crate::entry::Entry;
use crate::file::{self, Reader};

/// A fuzz target: takes any bytes, and panics if a property does not hold.
pub type Target = fn(&[u8]);

/// The targets by name.
pub const TARGETS: [(&str, Target); 1] = [("record", record)];

/// A file that is read in small pieces.
struct Pieces<'a>(&'a [u8]);

/// A record has the same entries however it is read, and when they are written again.
///
/// If the first byte is even, the rest is a file. Otherwise it is the content of a file's only block, which
/// no mutation would get past the checksum.
pub fn record(data: &[u8]) {
    let Some((kind, data)) = data.split_first() else { return };
    let bytes = if kind % 2 == 0 { data.to_vec() } else { file::in_one_block(data) };
    let (entries, end) = read(&bytes[..]);
    assert_eq!((entries.clone(), end), read(Pieces(&bytes)), "in one piece and in small ones");
    let written = file::encoded(&entries);
    let (again, end) = read(&written[..]);
    assert_eq!(again.len(), entries.len(), "{end:?}");
    for (entry, again) in entries.iter().zip(&again) {
        // Reading rounds some fractions to a neighbour.
        let value = |entry: &Entry| serde_json::to_value(entry).map(|it| without_fractions(&it)).ok();
        assert_eq!(value(entry), value(again));
    }
}

/// Returns the entries up to the first defect, and the end: whether the record is truncated, or the error.
fn read(from: impl Read) -> (Vec<Entry>, Result<bool, String>) {
    let mut entries = Vec::new();
    let ended = Reader::new(from).and_then(|mut reader| {
        while let Some(entry) = reader.next_entry()? {
            entries.push(entry);
        }
        Ok(reader.is_truncated())
    });
    (entries, ended.map_err(|error| error.to_string()))
}

fn without_fractions(value: &serde_json::Value) -> serde_json::Value {
    use serde_json::Value;
    match value {
        Value::Number(number) if number.is_f64() => Value::Null,
        Value::Array(items) => items.iter().map(without_fractions).collect(),
        Value::Object(fields) => {
            fields.iter().map(|(name, value)| (name.clone(), without_fractions(value))).collect()
        }
        other => other.clone(),
    }
}

impl Read for Pieces<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = buffer.len().min(7);
        self.0.read(&mut buffer[..n])
    }
}

#[cfg(test)]
mod tests;

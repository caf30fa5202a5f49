//! What is left out of an object when it comes in.

mod fields;

pub use fields::{Fields, FieldsError};

use serde_json::value::RawValue;

use super::metadata::{Entries, Error};

/// The annotation in which `kubectl apply` keeps what it applied last.
pub(super) const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// What to leave out of the objects that come in, to save memory.
///
/// What was left out is in no text that an object hands out; therefore no cached object may be written back as a whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pruning {
    /// Leaves out `metadata.managedFields`, often a fifth of an object.
    pub managed_fields: bool,
    /// Leaves out the annotation `kubectl.kubernetes.io/last-applied-configuration`.
    pub last_applied: bool,
    /// Which of the other fields are kept. Unless that is [`Fields::all`], it costs a second walk over each object.
    pub fields: Fields,
}

// === impl Pruning ===

impl Pruning {
    /// Leaves out nothing.
    pub fn none() -> Self {
        Self { managed_fields: false, last_applied: false, fields: Fields::all() }
    }

    /// Returns the text of the metadata without what is to be left out; none where that changes nothing.
    pub(super) fn apply(&self, metadata: &str) -> Result<Option<String>, Error> {
        if !self.may_apply_to(metadata) {
            return Ok(None);
        }
        let mut has_changed = false;
        let mut pruned = Writer::new(metadata.len());
        let entries_of_metadata = entries(metadata)?;
        let is_annotations = |key: &RawValue| name(key).is_ok_and(|name| name == "annotations");
        let are_twice = || entries_of_metadata.iter().filter(|(key, _)| is_annotations(key)).count() > 1;
        for (key, value) in &entries_of_metadata {
            match name(key)?.as_str() {
                "managedFields" if self.managed_fields => has_changed = true,
                "annotations" if self.last_applied && value.get().starts_with('{') => {
                    let mut annotations = Writer::new(value.get().len());
                    for (key, value) in &entries(value.get())? {
                        if name(key)? == LAST_APPLIED {
                            has_changed = true;
                        } else {
                            annotations.entry(key.get(), value.get());
                        }
                    }
                    // Without any annotation the API server leaves the whole map out, and so do we; unless that hid from the reader
                    // that it is there twice.
                    if annotations.has_entries || are_twice() {
                        pruned.entry(key.get(), &annotations.finish());
                    }
                }
                _ => pruned.entry(key.get(), value.get()),
            }
        }
        Ok(has_changed.then(|| pruned.finish()))
    }

    /// A cheap look that spares the objects that have nothing to leave out the second pass.
    fn may_apply_to(&self, metadata: &str) -> bool {
        (self.managed_fields && metadata.contains("\"managedFields\""))
            || (self.last_applied && metadata.contains("kubectl.kubernetes.io"))
            || ((self.managed_fields || self.last_applied) && metadata.contains("\\u"))
    }
}

/// Leaves out both `managedFields` and the last applied configuration, and nothing else.
impl Default for Pruning {
    fn default() -> Self {
        Self { managed_fields: true, last_applied: true, fields: Fields::all() }
    }
}

fn entries(object: &str) -> Result<Vec<(&RawValue, &RawValue)>, Error> {
    let Entries(entries) = serde_json::from_str(object).map_err(Error::Metadata)?;
    Ok(entries)
}

fn name(key: &RawValue) -> Result<String, Error> {
    serde_json::from_str(key.get()).map_err(Error::Metadata)
}

/// Writes a JSON object entry by entry.
struct Writer {
    text: String,
    has_entries: bool,
}

// === impl Writer ===

impl Writer {
    fn new(capacity: usize) -> Self {
        let mut text = String::with_capacity(capacity);
        text.push('{');
        Self { text, has_entries: false }
    }

    fn entry(&mut self, key: &str, value: &str) {
        if self.has_entries {
            self.text.push(',');
        }
        self.has_entries = true;
        self.text.push_str(key);
        self.text.push(':');
        self.text.push_str(value);
    }

    fn finish(mut self) -> String {
        self.text.push('}');
        self.text
    }
}

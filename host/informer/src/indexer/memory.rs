//! The memory that a cache takes.

use crate::object::Object;

/// The memory that a cache takes. It is counted as objects are added and removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// The number of objects.
    pub objects: usize,
    /// The length of all objects' JSON texts, as if none were compressed.
    pub text: usize,
    /// The length of the hot texts, and the bytes of the values that the decoder copied with them. Values
    /// that are kept for the next change as well count twice.
    pub plain: usize,
    /// The compressed length of the cold texts.
    pub compressed: usize,
    /// The bytes of the key table, the sort order, the indices, and the kept values of declared fields.
    pub indices: usize,
    /// The bytes of the compression dictionaries.
    pub dictionaries: usize,
}

// === impl Memory ===

impl Memory {
    /// Returns how many bytes the cache takes in all.
    #[must_use]
    pub fn total(&self) -> usize {
        let Self { objects: _, text: _, plain, compressed, indices, dictionaries } = *self;
        plain + compressed + indices + dictionaries
    }

    /// Adds an object. `compressed` is the compressed length of a cold object.
    pub(super) fn add(&mut self, object: &Object, compressed: Option<usize>) {
        self.objects += 1;
        self.text += object.json_length();
        match compressed {
            Some(compressed) => self.compressed += compressed,
            None => self.plain += object.hot_length(),
        }
    }

    /// Removes an object. `compressed` must be the same as when it was added.
    pub(super) fn remove(&mut self, object: &Object, compressed: Option<usize>) {
        self.objects -= 1;
        self.text -= object.json_length();
        match compressed {
            Some(compressed) => self.compressed -= compressed,
            None => self.plain -= object.hot_length(),
        }
    }
}

//! What a cache takes.

use crate::object::Object;

/// How much memory a cache takes, kept by addition and subtraction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// How many objects there are.
    pub objects: usize,
    /// The length of all objects' JSON text, in whatever form it is kept.
    pub text: usize,
    /// The length of the texts that are kept as they are.
    pub plain: usize,
    /// What the others take compressed.
    pub compressed: usize,
    /// What finding objects takes: by key, by order, by the indices.
    pub indices: usize,
    /// What the dictionaries take with which they are compressed.
    pub dictionaries: usize,
}

// === impl Memory ===

impl Memory {
    /// Returns how many bytes it takes in all.
    #[must_use]
    pub fn total(&self) -> usize {
        let Self { objects: _, text: _, plain, compressed, indices, dictionaries } = *self;
        plain + compressed + indices + dictionaries
    }

    /// Adds an object that is kept compressed to `cold` bytes, or plain.
    pub(super) fn add(&mut self, object: &Object, cold: Option<usize>) {
        self.objects += 1;
        self.text += object.json_length();
        match cold {
            Some(cold) => self.compressed += cold,
            None => self.plain += object.json_length(),
        }
    }

    /// Takes away an object as it was added.
    pub(super) fn remove(&mut self, object: &Object, cold: Option<usize>) {
        self.objects -= 1;
        self.text -= object.json_length();
        match cold {
            Some(cold) => self.compressed -= cold,
            None => self.plain -= object.json_length(),
        }
    }
}

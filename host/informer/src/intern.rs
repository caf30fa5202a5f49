//! Stores values that many objects share once in the process.
//!
//! An interner holds one handle to each value. It drops the values that have no other handle each time it is
//! full, before it grows, and in [`Interner::release_unused`].

use std::borrow::Borrow;
use std::collections::HashSet;
use std::hash::Hash;
use std::sync::LazyLock;

use parking_lot::Mutex;

/// An interner with fewer values does not look for unused ones before it grows.
const SMALL: usize = 256;

/// A reference-counted handle to a value.
pub(crate) trait Intern: Clone + Eq + Hash {
    /// Whether this is the only handle to the value.
    fn is_unique(&self) -> bool;
}

/// Stores one copy of each value.
pub(crate) struct Interner<T> {
    entries: LazyLock<Mutex<HashSet<T>>>,
}

// === impl Interner ===

impl<T: Intern> Interner<T> {
    pub(crate) const fn new() -> Self {
        Self { entries: LazyLock::new(Mutex::default) }
    }

    /// Returns the stored value that equals `wanted`.
    pub(crate) fn find<Q>(&self, wanted: &Q) -> Option<T>
    where
        T: Borrow<Q>,
        Q: Eq + Hash + ?Sized,
    {
        self.entries.lock().get(wanted).cloned()
    }

    /// Returns the stored value that equals this one. Stores this one if the interner has none.
    pub(crate) fn intern(&self, value: T) -> T {
        let mut entries = self.entries.lock();
        if let Some(stored) = entries.get(&value) {
            return stored.clone();
        }
        if entries.len() >= SMALL && entries.len() == entries.capacity() {
            entries.retain(|entry| !entry.is_unique());
        }
        entries.insert(value.clone());
        value
    }

    /// Drops the values that have no other handle, and frees memory after many of them.
    pub(crate) fn release_unused(&self) {
        let mut entries = self.entries.lock();
        entries.retain(|entry| !entry.is_unique());
        if entries.len() < entries.capacity() / 4 {
            let wanted = SMALL.max(entries.len() * 2);
            entries.shrink_to(wanted);
        }
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.entries.lock().len()
    }
}

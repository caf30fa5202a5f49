//! Texts that many objects share, kept once in the process.
//!
//! An interner holds what it has handed out until nobody else does: it looks for such leftovers whenever it has doubled, and
//! when somebody says that much was freed ([`Interner::sweep`]).

use std::borrow::Borrow;
use std::collections::HashSet;
use std::hash::Hash;
use std::sync::LazyLock;

use parking_lot::Mutex;

/// Below this many entries nobody bothers to look for leftovers.
const SMALL: usize = 256;

/// Something shared whose holders can be counted.
pub(crate) trait Shared: Clone + Eq + Hash {
    /// Whether this is the only handle.
    fn is_last(&self) -> bool;
}

/// Keeps one copy of each value.
pub(crate) struct Interner<T> {
    entries: LazyLock<Mutex<HashSet<T>>>,
}

// === impl Interner ===

impl<T: Shared> Interner<T> {
    pub(crate) const fn new() -> Self {
        Self { entries: LazyLock::new(Mutex::default) }
    }

    /// Returns the value that equals `wanted`, if there is one.
    pub(crate) fn find<Q>(&self, wanted: &Q) -> Option<T>
    where
        T: Borrow<Q>,
        Q: Eq + Hash + ?Sized,
    {
        self.entries.lock().get(wanted).cloned()
    }

    /// Returns the value that equals this one, which is this one if there was none.
    pub(crate) fn keep(&self, value: T) -> T {
        let mut entries = self.entries.lock();
        if let Some(kept) = entries.get(&value) {
            return kept.clone();
        }
        if entries.len() >= SMALL && entries.len() == entries.capacity() {
            entries.retain(|entry| !entry.is_last());
        }
        entries.insert(value.clone());
        value
    }

    /// Forgets what nobody else holds any more.
    pub(crate) fn release_unused(&self) {
        let mut entries = self.entries.lock();
        entries.retain(|entry| !entry.is_last());
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

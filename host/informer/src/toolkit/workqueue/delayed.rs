//! Delayed keys.

use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;

use tokio::time::Instant;

/// At most one entry per key, in the order of their due times.
#[derive(Debug)]
pub(super) struct Delayed<K> {
    by_due: BTreeMap<(Instant, u64), K>,
    places: HashMap<K, (Instant, u64)>,
    next_number: u64,
}

// === impl Delayed ===

impl<K> Default for Delayed<K> {
    fn default() -> Self {
        Self { by_due: BTreeMap::new(), places: HashMap::new(), next_number: 0 }
    }
}

impl<K: Clone + Eq + Hash> Delayed<K> {
    /// Adds a key. Of two times for one key the earlier one counts.
    pub(super) fn insert(&mut self, key: K, due: Instant) {
        if let Some(place) = self.places.get(&key) {
            if place.0 <= due {
                return;
            }
            self.by_due.remove(place);
        }
        let place = (due, self.next_number);
        self.next_number += 1;
        self.places.insert(key.clone(), place);
        self.by_due.insert(place, key);
    }

    /// Removes the first key, if it is due.
    pub(super) fn pop_due(&mut self, now: Instant) -> Option<(Instant, K)> {
        let first = self.by_due.first_entry().filter(|entry| entry.key().0 <= now)?;
        let ((due, _), key) = first.remove_entry();
        self.places.remove(&key);
        if self.places.is_empty() {
            self.places.shrink_to(64);
        }
        Some((due, key))
    }

    pub(super) fn next_due(&self) -> Option<Instant> {
        self.by_due.keys().next().map(|(due, _)| *due)
    }

    pub(super) fn contains(&self, key: &K) -> bool {
        self.places.contains_key(key)
    }

    pub(super) fn len(&self) -> usize {
        self.by_due.len()
    }
}

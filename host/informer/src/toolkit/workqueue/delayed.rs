//! Delayed keys.

use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;

use tokio::time::Instant;

/// At most one entry per key, in the order of their due times.
#[derive(Debug)]
pub(super) struct Delayed<K> {
    by_due: BTreeMap<(Instant, u64), K>,
    places: HashMap<K, Place>,
    next_number: u64,
}

/// Why a key is delayed.
#[derive(Clone, Copy, Debug)]
pub(super) enum Delay {
    /// It was added with a delay, which lasts whatever happens to the key.
    Added,
    /// It is to be tried again, unless a worker gets it before.
    Retry,
}

/// The due times of a key. It waits for the earlier one.
#[derive(Debug, Default)]
struct Place {
    added: Option<Instant>,
    retry: Option<Instant>,
    number: u64,
}

// === impl Delayed ===

impl<K> Default for Delayed<K> {
    fn default() -> Self {
        Self { by_due: BTreeMap::new(), places: HashMap::new(), next_number: 0 }
    }
}

impl<K: Clone + Eq + Hash> Delayed<K> {
    /// Adds a key. Of several times for one key the earliest one counts.
    pub(super) fn insert(&mut self, key: K, due: Instant, delay: Delay) {
        let place = self.places.entry(key.clone()).or_default();
        let before = place.first();
        let time = match delay {
            Delay::Added => &mut place.added,
            Delay::Retry => &mut place.retry,
        };
        *time = Some(time.map_or(due, |other| other.min(due)));
        if let Some(before) = before {
            if before <= due {
                return;
            }
            self.by_due.remove(&(before, place.number));
        }
        place.number = self.next_number;
        self.by_due.insert((due, place.number), key);
        self.next_number += 1;
    }

    /// Ends the wait of a key for its retry. A delay with which it was added goes on.
    pub(super) fn end_retry(&mut self, key: &K) {
        let Some(place) = self.places.get_mut(key) else { return };
        let Some(retry) = place.retry.take() else { return };
        let number = place.number;
        match place.added {
            Some(added) if added <= retry => {}
            Some(added) => {
                let key = self.by_due.remove(&(retry, number));
                self.by_due.extend(key.map(|key| ((added, number), key)));
            }
            None => {
                self.by_due.remove(&(retry, number));
                self.leave(key);
            }
        }
    }

    /// Removes the first key, if it is due.
    pub(super) fn pop_due(&mut self, now: Instant) -> Option<(Instant, K)> {
        let first = self.by_due.first_entry().filter(|entry| entry.key().0 <= now)?;
        let ((due, number), key) = first.remove_entry();
        // A retry that was due first does not end the delay with which the key was added.
        match self.places.get_mut(&key) {
            Some(Place { added: Some(added), retry, .. }) if *added > due => {
                *retry = None;
                self.by_due.insert((*added, number), key.clone());
            }
            _ => self.leave(&key),
        }
        Some((due, key))
    }

    fn leave(&mut self, key: &K) {
        self.places.remove(key);
        if self.places.is_empty() {
            self.places.shrink_to(64);
        }
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

// === impl Place ===

impl Place {
    fn first(&self) -> Option<Instant> {
        self.added.into_iter().chain(self.retry).min()
    }
}

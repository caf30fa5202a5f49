//! The order of the ready objects: new work goes before initial adds.
//!
//! After a start or a replay, the initial adds of all objects wait. A change that comes then must not wait
//! behind them. But changes that never end must not keep the listener from its sync: after
//! [`NEW_PER_INITIAL`] objects with new work, one with an initial add is delivered. Among each of the two
//! kinds, the object whose first notification came first is delivered first.

use std::collections::BTreeMap;

use crate::names::ObjectKey;

/// After so many deliveries of new work, an initial add is delivered.
const NEW_PER_INITIAL: u32 = 4;

/// The ready objects, by the ticket of their first notification.
#[derive(Debug, Default)]
pub(super) struct ReadyQueue {
    /// Those for which anything but an initial add waits.
    new: BTreeMap<u64, ObjectKey>,
    /// Those for which nothing but an initial add waits.
    initial: BTreeMap<u64, ObjectKey>,
    n_new_in_a_row: u32,
}

// === impl ReadyQueue ===

impl ReadyQueue {
    /// Adds an object. `is_initial` says whether nothing but an initial add waits for it.
    pub(super) fn insert(&mut self, ticket: u64, key: ObjectKey, is_initial: bool) {
        if is_initial { &mut self.initial } else { &mut self.new }.insert(ticket, key);
    }

    /// Records that more than an initial add waits for an object.
    pub(super) fn promote(&mut self, ticket: u64) {
        if let Some(key) = self.initial.remove(&ticket) {
            self.new.insert(ticket, key);
        }
    }

    pub(super) fn remove(&mut self, ticket: u64) {
        if self.new.remove(&ticket).is_none() {
            self.initial.remove(&ticket);
        }
    }

    /// Removes and returns the object that is delivered next.
    pub(super) fn pop(&mut self) -> Option<ObjectKey> {
        let is_initial_due = self.new.is_empty() || self.n_new_in_a_row >= NEW_PER_INITIAL;
        if is_initial_due && let Some((_, key)) = self.initial.pop_first() {
            self.n_new_in_a_row = 0;
            return Some(key);
        }
        // While no initial add waits, none is kept waiting.
        self.n_new_in_a_row = if self.initial.is_empty() { 0 } else { self.n_new_in_a_row + 1 };
        self.new.pop_first().map(|(_, key)| key)
    }

    /// Returns the objects that have waited longest of both kinds.
    pub(super) fn oldest(&self) -> impl Iterator<Item = &ObjectKey> {
        self.new.values().take(1).chain(self.initial.values().take(1))
    }

    pub(super) fn len(&self) -> usize {
        self.new.len() + self.initial.len()
    }

    pub(super) fn clear(&mut self) {
        self.new.clear();
        self.initial.clear();
    }
}

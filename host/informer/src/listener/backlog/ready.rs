//! The order of the ready objects: new work goes before initial adds.
//!
//! After a start or a replay, the initial adds of all objects wait. A change that comes then must not wait
//! behind them. But changes that never end must not keep the listener from its sync: after
//! [`NEW_PER_INITIAL`] objects with new work, one with an initial add is delivered. Among each of the two
//! kinds, the object whose first notification came first is delivered first.

use std::collections::BTreeMap;

use tokio::time::Instant;

use super::Pending;
use super::initial_adds::InitialAdds;
use crate::names::ObjectKey;
use crate::object::Object;

/// After so many deliveries of new work, an initial add is delivered.
const NEW_PER_INITIAL: u32 = 4;

/// The ready objects, by the ticket of their first notification.
#[derive(Debug, Default)]
pub(super) struct ReadyQueue {
    /// Those for which anything but an initial add waits.
    new: BTreeMap<u64, ObjectKey>,
    /// Those for which nothing but an initial add waits, if they have a queue.
    initial: BTreeMap<u64, ObjectKey>,
    /// The initial adds of objects that have no queue.
    listed: InitialAdds,
    n_new_in_a_row: u32,
}

/// The object that is delivered next.
pub(super) enum Next {
    /// One that has a queue.
    Queued(ObjectKey),
    /// One that has none, and its initial add.
    Listed(Pending),
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

    /// Adds the initial adds of objects that have no queue, sorted by key. They take one ticket each.
    pub(super) fn insert_list(&mut self, objects: Vec<Object>, first_ticket: u64, arrived: Instant) {
        self.listed.append(objects, first_ticket, arrived);
    }

    /// Removes and returns the initial add of an object that has no queue.
    pub(super) fn take_listed(&mut self, key: &ObjectKey) -> Option<Pending> {
        if self.listed.is_empty() { None } else { self.listed.take(key) }
    }

    /// Drops the initial adds of objects that have no queue and are not to be kept. Returns how many.
    pub(super) fn retain_listed(&mut self, is_kept: impl Fn(&ObjectKey) -> bool) -> usize {
        self.listed.retain(is_kept)
    }

    /// Removes and returns the object that is delivered next.
    pub(super) fn pop(&mut self) -> Option<Next> {
        let is_initial_due = self.new.is_empty() || self.n_new_in_a_row >= NEW_PER_INITIAL;
        if is_initial_due && let Some(next) = self.pop_initial() {
            self.n_new_in_a_row = 0;
            return Some(next);
        }
        // While no initial add waits, none is kept waiting.
        let has_initial = !self.initial.is_empty() || !self.listed.is_empty();
        self.n_new_in_a_row = if has_initial { self.n_new_in_a_row + 1 } else { 0 };
        self.new.pop_first().map(|(_, key)| Next::Queued(key))
    }

    fn pop_initial(&mut self) -> Option<Next> {
        let queued = self.initial.first_key_value().map(|(ticket, _)| *ticket);
        match (queued, self.listed.first_ticket()) {
            (Some(queued), listed) if listed.is_none_or(|listed| queued < listed) => {
                self.initial.pop_first().map(|(_, key)| Next::Queued(key))
            }
            _ => self.listed.pop_first().map(Next::Listed),
        }
    }

    /// Returns the objects with a queue that have waited longest of both kinds.
    pub(super) fn oldest(&self) -> impl Iterator<Item = &ObjectKey> {
        self.new.values().take(1).chain(self.initial.values().take(1))
    }

    /// Returns when the first initial add of an object without a queue came.
    pub(super) fn first_listed_at(&self) -> Option<Instant> {
        self.listed.first_arrived()
    }

    pub(super) fn len(&self) -> usize {
        self.new.len() + self.initial.len() + self.listed.len()
    }

    /// Frees the memory that is kept for the next objects: a map that was used keeps a node.
    pub(super) fn free_spare(&mut self) {
        for objects in [&mut self.new, &mut self.initial] {
            if objects.is_empty() {
                *objects = BTreeMap::new();
            }
        }
    }

    pub(super) fn clear(&mut self) {
        self.new.clear();
        self.initial.clear();
        self.listed.clear();
    }
}

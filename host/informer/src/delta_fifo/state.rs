//! What is behind the queue's lock.

use std::collections::VecDeque;

use super::bulk::Bulk;
use super::seen::SeenMarks;
use super::{Delta, Deltas};
use crate::names::{KeyMap, ObjectKey};

/// Below this many queued keys the queue never bothers to give memory back.
const SMALL: usize = 64;

#[derive(Default)]
pub(super) struct State {
    lists: KeyMap<Deltas>,
    queue: VecDeque<ObjectKey>,
    /// Stands in the queue behind the first `before_bulk` keys. Where the map has a list for one of its keys, that list counts.
    bulk: Bulk,
    before_bulk: usize,
    /// Something was added, updated, deleted or replaced, ever.
    pub(super) populated: bool,
    /// How many keys of the first replace have yet to be popped.
    pub(super) initial_population: usize,
    pub(super) closed: bool,
    pub(super) seen: SeenMarks,
}

// === impl State ===

impl State {
    pub(super) fn len(&self) -> usize {
        self.queue.len() + self.bulk.len()
    }

    pub(super) fn has(&self, key: &ObjectKey) -> bool {
        self.lists.contains_key(key) || self.bulk.get(key).is_some()
    }

    pub(super) fn deltas(&self, key: &ObjectKey) -> Option<Deltas> {
        let of_bulk = || self.bulk.get(key).map(|object| Deltas::new(Delta::Replaced(object.clone())));
        self.lists.get(key).cloned().or_else(of_bulk)
    }

    /// Returns all queued keys, in any order; some of them twice.
    pub(super) fn all_keys(&self) -> Vec<ObjectKey> {
        self.lists.keys().chain(self.bulk.keys()).cloned().collect()
    }

    /// Returns the queued keys, oldest first. There must be no bulk.
    pub(super) fn keys(&self) -> impl Iterator<Item = &ObjectKey> {
        debug_assert!(self.bulk.is_empty(), "its keys would be missing");
        self.queue.iter()
    }

    pub(super) fn push(&mut self, key: ObjectKey, delta: Delta) {
        if let Some(deltas) = self.lists.get_mut(&key) {
            deltas.push(delta);
        } else if let Some(object) = self.bulk.get(&key) {
            let mut deltas = Deltas::new(Delta::Replaced(object.clone()));
            deltas.push(delta);
            self.lists.insert(key, deltas);
        } else {
            self.insert(key, Deltas::new(delta));
        }
    }

    /// Takes the oldest key out, and its deltas.
    pub(super) fn pop(&mut self) -> Option<(ObjectKey, Deltas)> {
        if self.before_bulk == 0
            && let Some(object) = self.bulk.pop()
        {
            let key = object.key().clone();
            let deltas = self.lists.remove(&key).unwrap_or_else(|| Deltas::new(Delta::Replaced(object)));
            return Some((key, deltas));
        }
        let key = self.queue.pop_front()?;
        self.before_bulk = self.before_bulk.saturating_sub(1);
        let deltas = self.lists.remove(&key)?;
        Some((key, deltas))
    }

    /// Puts a key that was popped back to the head, with deltas that are older than what is queued for it.
    pub(super) fn put_back(&mut self, key: ObjectKey, deltas: Deltas) {
        self.before_bulk += usize::from(!self.bulk.is_empty());
        self.queue.push_front(key.clone());
        self.lists.insert(key, deltas);
    }

    /// Puts deltas back behind everything, unless their key is queued again.
    pub(super) fn requeue(&mut self, key: ObjectKey, deltas: Deltas) {
        if !self.has(&key) {
            self.insert(key, deltas);
        }
    }

    /// Gives each object of the bulk its own place.
    pub(super) fn unpack(&mut self) {
        if self.bulk.is_empty() {
            self.before_bulk = 0;
            return;
        }
        let behind = self.queue.split_off(self.before_bulk);
        self.before_bulk = 0;
        while let Some(object) = self.bulk.pop() {
            self.queue.push_back(object.key().clone());
            self.lists.entry(object.key().clone()).or_insert_with(|| Deltas::new(Delta::Replaced(object)));
        }
        self.queue.extend(behind);
    }

    /// Queues a list, behind the first so many keys. There must be no bulk.
    pub(super) fn push_bulk(&mut self, mut bulk: Bulk, before_bulk: usize) {
        debug_assert!(self.bulk.is_empty(), "it would be lost");
        if !self.lists.is_empty() {
            let lists = &mut self.lists;
            for (key, deltas) in lists.iter_mut() {
                if let Some(object) = bulk.get(key) {
                    deltas.push(Delta::Replaced(object.clone()));
                }
            }
            bulk = bulk.without(|key| lists.contains_key(key));
        }
        self.seen.pushed(bulk.len());
        self.bulk = bulk;
        self.before_bulk = before_bulk;
    }

    /// Gives memory back after a burst.
    pub(super) fn shrink(&mut self) {
        let wanted = |n_used: usize, capacity: usize| {
            (capacity > SMALL && n_used < capacity / 8).then(|| SMALL.max(n_used * 2))
        };
        if let Some(wanted) = wanted(self.queue.len(), self.queue.capacity()) {
            self.queue.shrink_to(wanted);
        }
        if let Some(wanted) = wanted(self.lists.len(), self.lists.capacity()) {
            self.lists.shrink_to(wanted);
        }
    }

    fn insert(&mut self, key: ObjectKey, deltas: Deltas) {
        self.lists.insert(key.clone(), deltas);
        self.queue.push_back(key);
        self.seen.pushed(1);
    }

    /// Checks that the map has a list for each key in the queue and for none but those and the bulk's; returns all keys, oldest first.
    #[cfg(test)]
    pub(super) fn order(&self) -> Vec<ObjectKey> {
        assert!(self.queue.iter().all(|key| self.lists.contains_key(key) && self.bulk.get(key).is_none()));
        let n_of_bulk = self.lists.keys().filter(|key| self.bulk.get(key).is_some()).count();
        assert_eq!(self.lists.len(), self.queue.len() + n_of_bulk);
        let (before, behind) = self.queue.as_slices();
        let queue: Vec<_> = before.iter().chain(behind).cloned().collect();
        if self.bulk.is_empty() {
            return queue;
        }
        let (before, behind) = queue.split_at(self.before_bulk);
        [before.to_vec(), self.bulk.keys().cloned().collect(), behind.to_vec()].concat()
    }

    /// Returns for how many keys there is room.
    #[cfg(test)]
    pub(super) fn capacity(&self) -> usize {
        self.queue.capacity().max(self.lists.capacity())
    }
}

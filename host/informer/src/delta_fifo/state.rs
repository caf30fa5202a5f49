//! The queue's contents, which its lock guards.

use std::collections::VecDeque;

use super::progress::ProgressTracker;
use super::queued_list::QueuedList;
use super::{Delta, Deltas};
use crate::names::{KeyMap, ObjectKey};

/// The queue keeps room for this many keys when it shrinks.
const MIN_CAPACITY: usize = 64;

/// The queued keys in order, and the deltas of each.
#[derive(Default)]
pub(super) struct DeltaFifoState {
    deltas: KeyMap<Deltas>,
    queue: VecDeque<ObjectKey>,
    /// A list that is queued as one piece, behind the first `n_before_list` keys of `queue`. If `deltas` has
    /// an entry for one of its keys, the entry holds all deltas of that key.
    list: QueuedList,
    n_before_list: usize,
    pub(super) is_closed: bool,
    pub(super) progress: ProgressTracker,
}

// === impl DeltaFifoState ===

impl DeltaFifoState {
    pub(super) fn len(&self) -> usize {
        self.queue.len() + self.list.len()
    }

    pub(super) fn has(&self, key: &ObjectKey) -> bool {
        self.deltas.contains_key(key) || self.list.get(key).is_some()
    }

    pub(super) fn deltas(&self, key: &ObjectKey) -> Option<Deltas> {
        let listed = || self.list.get(key).map(|object| Deltas::new(Delta::Replaced(object.clone())));
        self.deltas.get(key).cloned().or_else(listed)
    }

    /// Returns all queued keys in any order, some of them twice.
    pub(super) fn all_keys(&self) -> Vec<ObjectKey> {
        self.deltas.keys().chain(self.list.keys()).cloned().collect()
    }

    /// Returns the queued keys, oldest first. The list must have been unpacked.
    pub(super) fn keys(&self) -> impl Iterator<Item = &ObjectKey> {
        debug_assert!(self.list.is_empty(), "the keys of the list would be missing");
        self.queue.iter()
    }

    /// Appends a delta to those of its key. A key that is not queued goes to the end of the queue.
    pub(super) fn push(&mut self, key: ObjectKey, delta: Delta) {
        if let Some(deltas) = self.deltas.get_mut(&key) {
            deltas.push(delta);
        } else if let Some(object) = self.list.get(&key) {
            let mut deltas = Deltas::new(Delta::Replaced(object.clone()));
            deltas.push(delta);
            self.deltas.insert(key, deltas);
        } else {
            self.insert(key, Deltas::new(delta));
        }
    }

    /// Removes and returns the oldest key and its deltas.
    pub(super) fn pop(&mut self) -> Option<(ObjectKey, Deltas)> {
        if self.n_before_list == 0
            && let Some(object) = self.list.pop()
        {
            let key = object.key().clone();
            let deltas = self.deltas.remove(&key).unwrap_or_else(|| Deltas::new(Delta::Replaced(object)));
            return Some((key, deltas));
        }
        let key = self.queue.pop_front()?;
        self.n_before_list = self.n_before_list.saturating_sub(1);
        let deltas = self.deltas.remove(&key)?;
        Some((key, deltas))
    }

    /// Returns a key that was popped to the head of the queue, with the deltas that were not processed.
    pub(super) fn put_back(&mut self, key: ObjectKey, deltas: Deltas) {
        self.n_before_list += usize::from(!self.list.is_empty());
        self.queue.push_front(key.clone());
        self.deltas.insert(key, deltas);
    }

    /// Returns deltas to the end of the queue, unless their key has been queued again.
    pub(super) fn requeue(&mut self, key: ObjectKey, deltas: Deltas) {
        if !self.has(&key) {
            self.insert(key, deltas);
        }
    }

    /// Gives each object of the list an entry of its own.
    pub(super) fn unpack_list(&mut self) {
        if self.list.is_empty() {
            self.n_before_list = 0;
            return;
        }
        let behind = self.queue.split_off(self.n_before_list);
        self.n_before_list = 0;
        while let Some(object) = self.list.pop() {
            self.queue.push_back(object.key().clone());
            self.deltas.entry(object.key().clone()).or_insert_with(|| Deltas::new(Delta::Replaced(object)));
        }
        self.queue.extend(behind);
    }

    /// Queues a list as one piece, behind the first `n_before_list` keys. The list before must have been
    /// unpacked.
    pub(super) fn push_list(&mut self, mut list: QueuedList, n_before_list: usize) {
        debug_assert!(self.list.is_empty(), "the list before would be lost");
        if !self.deltas.is_empty() {
            let queued = &mut self.deltas;
            for (key, deltas) in queued.iter_mut() {
                if let Some(object) = list.get(key) {
                    deltas.push(Delta::Replaced(object.clone()));
                }
            }
            list = list.without(|key| queued.contains_key(key));
        }
        self.progress.pushed(list.len());
        self.list = list;
        self.n_before_list = n_before_list;
    }

    /// Frees memory after a burst.
    pub(super) fn shrink(&mut self) {
        let wanted = |n_used: usize, capacity: usize| {
            (capacity > MIN_CAPACITY && n_used < capacity / 8).then(|| MIN_CAPACITY.max(n_used * 2))
        };
        if let Some(wanted) = wanted(self.queue.len(), self.queue.capacity()) {
            self.queue.shrink_to(wanted);
        }
        if let Some(wanted) = wanted(self.deltas.len(), self.deltas.capacity()) {
            self.deltas.shrink_to(wanted);
        }
    }

    fn insert(&mut self, key: ObjectKey, deltas: Deltas) {
        self.deltas.insert(key.clone(), deltas);
        self.queue.push_back(key);
        self.progress.pushed(1);
    }

    /// Checks that exactly the keys of the queue, and some of the list's, have an entry in the map. Returns
    /// all keys, oldest first.
    #[cfg(test)]
    pub(super) fn order(&self) -> Vec<ObjectKey> {
        assert!(self.queue.iter().all(|key| self.deltas.contains_key(key) && self.list.get(key).is_none()));
        let n_of_list = self.deltas.keys().filter(|key| self.list.get(key).is_some()).count();
        assert_eq!(self.deltas.len(), self.queue.len() + n_of_list);
        let (before, behind) = self.queue.as_slices();
        let queue: Vec<_> = before.iter().chain(behind).cloned().collect();
        if self.list.is_empty() {
            return queue;
        }
        let (before, behind) = queue.split_at(self.n_before_list);
        [before.to_vec(), self.list.keys().cloned().collect(), behind.to_vec()].concat()
    }

    /// Returns for how many keys the queue has room.
    #[cfg(test)]
    pub(super) fn capacity(&self) -> usize {
        self.queue.capacity().max(self.deltas.capacity())
    }
}

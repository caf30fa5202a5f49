//! The objects that the server has and that cannot be decoded.
//!
//! A list leaves such an object out and names it. The list does not fail as a whole, since one bad object
//! would then make the resource unavailable. The store keeps the last decodable state of the object: the
//! object exists, and a false delete would make controllers clean up. So listeners get no event of the object
//! until a state of it can be decoded again, or until the server no longer has it. If the name of one cannot
//! be read, it may be any cached object that is not in the list, so all of these stay.

use std::sync::Arc;

use hashbrown::hash_map::Entry;

use super::ReflectorStore;
use super::outcome::in_full;
use super::status::UndecodableObject;
use crate::list_watch::{DecodeError, Undecodable};
use crate::names::{KeyMap, KeySet, ObjectKey};
use crate::object::Object;

/// The status names at most this many, and the log as many of each list.
const MAX_SHOWN: usize = 20;

/// The undecodable objects of the last list and of the events since then.
#[derive(Debug, Default)]
pub(super) struct UndecodableObjects {
    named: KeyMap<Arc<DecodeError>>,
    nameless: Vec<Arc<DecodeError>>,
}

// === impl UndecodableObjects ===

impl UndecodableObjects {
    /// Returns those of a list.
    pub(super) fn new(objects: Vec<Undecodable>) -> Self {
        let mut all = Self::default();
        objects.into_iter().for_each(|object| all.note(object));
        all
    }

    pub(super) fn note(&mut self, object: Undecodable) {
        let Undecodable { key, error } = object;
        match key.map(|key| self.named.entry(key)) {
            Some(Entry::Occupied(mut entry)) => drop(entry.insert(error)),
            Some(Entry::Vacant(entry)) => drop(entry.insert(error)),
            None => self.nameless.push(error),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.named.is_empty() && self.nameless.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.named.len() + self.nameless.len()
    }

    pub(super) fn contains(&self, key: &ObjectKey) -> bool {
        self.named.contains_key(key)
    }

    /// Notes that the object is decodable again, or deleted. Returns whether it was undecodable before.
    pub(super) fn forget(&mut self, key: &ObjectKey) -> bool {
        !self.named.is_empty() && self.named.remove(key).is_some()
    }

    /// Adds the last known states of the undecodable objects to the items of a list.
    pub(super) fn with_last_known(&self, mut items: Vec<Object>, store: &dyn ReflectorStore) -> Vec<Object> {
        if self.is_empty() {
            return items;
        }
        let n_items = items.len();
        let mut missing: KeySet = if self.nameless.is_empty() {
            self.named.keys().cloned().collect()
        } else {
            store.keys().into_iter().chain(self.named.keys().cloned()).collect()
        };
        items.iter().for_each(|item| drop(missing.take(item.key())));
        items.extend(missing.iter().filter_map(|key| store.newest(key)));
        if items.len() > n_items {
            // In the order of the server's list.
            items.sort_by(|left, right| left.key().cmp_in_list(right.key()));
        }
        items
    }

    /// Logs the objects that were not among the `earlier` ones.
    pub(super) fn log(&self, what: &str, earlier: &Self) {
        let new: Vec<_> = self.named.iter().filter(|(key, _)| !earlier.contains(key)).collect();
        for (key, error) in new.iter().take(MAX_SHOWN) {
            let error = in_full(&***error);
            tracing::error!(
                "{what}: {key} cannot be decoded; its last known state stays in the cache: {error}"
            );
        }
        if new.len() > MAX_SHOWN {
            tracing::error!(
                "{what}: {} more objects cannot be decoded; their last known states stay in the cache",
                new.len() - MAX_SHOWN
            );
        }
        if let (Some(error), 0) = (self.nameless.first(), earlier.nameless.len()) {
            tracing::error!(
                "{what}: {} objects cannot be decoded, and their names cannot be read; cached objects that are \
                 not in the list stay, since they may be these: {}",
                self.nameless.len(),
                in_full(&**error)
            );
        }
    }

    /// Returns the first ones for the status, in order.
    pub(super) fn shown(&self) -> Arc<[UndecodableObject]> {
        let shown = |key: Option<&ObjectKey>, error: &DecodeError| UndecodableObject {
            key: key.cloned(),
            message: in_full(error),
        };
        let mut named: Vec<_> = self.named.iter().collect();
        named.sort_by(|(left, _), (right, _)| left.cmp_in_list(right));
        let named = named.into_iter().map(|(key, error)| shown(Some(key), error));
        named.chain(self.nameless.iter().map(|error| shown(None, error))).take(MAX_SHOWN).collect()
    }
}

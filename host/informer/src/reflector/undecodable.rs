//! The objects that the server has and that cannot be decoded.
//!
//! A list leaves them out and names them; it must not fail as a whole, or one bad object would keep the resource from all who want it. Of each,
//! the last state that could be decoded stays: the object exists, and a delete that never happened would have controllers
//! clean up behind it. So its chain pauses, and goes on when a state can be decoded again, or when the server no longer has it. If the
//! name of one cannot be read, it may be any of those that the list does not have, and all of these stay.

use std::sync::Arc;

use hashbrown::hash_map::Entry;

use super::status::UndecodableObject;
use super::{ReflectorStore, in_full};
use crate::list_watch::{DecodeError, Undecodable};
use crate::names::{KeyMap, KeySet, ObjectKey};
use crate::object::Object;

/// Of more than this many the status has no names, and the log no lines.
const MAX_SHOWN: usize = 20;

/// What a list and the events since have brought that cannot be decoded.
#[derive(Debug, Default)]
pub(super) struct UndecodableObjects {
    named: KeyMap<Arc<DecodeError>>,
    nameless: Vec<Arc<DecodeError>>,
}

// === impl UndecodableObjects ===

impl UndecodableObjects {
    /// Takes what a list could not decode.
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

    pub(super) fn contains(&self, key: &ObjectKey) -> bool {
        self.named.contains_key(key)
    }

    /// Notes that the object can be decoded again, or is gone. Answers whether it could not.
    pub(super) fn forget(&mut self, key: &ObjectKey) -> bool {
        !self.named.is_empty() && self.named.remove(key).is_some()
    }

    /// Adds to what was listed what the store has of the objects that are there and cannot be decoded.
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
            // As the server would have sorted them.
            items.sort_by(|left, right| left.key().cmp_in_list(right.key()));
        }
        items
    }

    /// Logs those that were not among the `earlier` ones.
    pub(super) fn log(&self, what: &str, earlier: &Self) {
        let new: Vec<_> = self.named.iter().filter(|(key, _)| !earlier.contains(key)).collect();
        for (key, error) in new.iter().take(MAX_SHOWN) {
            let error = in_full(&***error);
            tracing::error!(
                "{what}: {key} cannot be decoded and is left out; its last known state stays in the cache: {error}"
            );
        }
        if new.len() > MAX_SHOWN {
            tracing::error!(
                "{what}: {} more objects cannot be decoded and are left out",
                new.len() - MAX_SHOWN
            );
        }
        if let (Some(error), 0) = (self.nameless.first(), earlier.nameless.len()) {
            tracing::error!(
                "{what}: {} objects, whose names cannot be read, cannot be decoded and are left out; cached objects that are not \
                 listed stay, since they may be these: {}",
                self.nameless.len(),
                in_full(&**error)
            );
        }
    }

    /// Returns how many there are.
    pub(super) fn len(&self) -> usize {
        self.named.len() + self.nameless.len()
    }

    /// Returns some of them for the status, in order.
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

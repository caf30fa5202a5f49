//! Who owns what, as far as the store's notices told.

use crate::status::GroupResource;
use crate::store::{Notice, Stored};
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

/// One object, by the place that it is kept in.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Item {
    pub(super) storage: GroupResource,
    pub(super) key: Arc<str>,
}

/// Owners by what they own, and the other way round.
#[derive(Debug, Default)]
pub(super) struct Graph {
    dependents: HashMap<String, BTreeSet<Item>>,
    owners: HashMap<Item, Vec<String>>,
    /// Objects that are being deleted and wait for what they own, by uid.
    waiting: HashMap<String, Item>,
}

// === impl Graph ===

impl Graph {
    /// Takes a notice in, and returns the objects that are to be looked at because of it.
    pub(super) fn note(&mut self, notice: &Notice) -> Vec<Item> {
        let object: &Stored = &notice.object;
        let item = Item { storage: notice.storage.clone(), key: object.key.clone() };
        let before = self.forget(&item);
        let mut concerned: BTreeSet<Item> = BTreeSet::new();
        for uid in before.iter().chain(&object.owners) {
            concerned.extend(self.waiting.get(uid).cloned());
        }
        if notice.removed {
            self.waiting.remove(&object.uid);
            concerned.extend(self.dependents(&object.uid).cloned());
            return concerned.into_iter().collect();
        }
        for uid in &object.owners {
            self.dependents.entry(uid.clone()).or_default().insert(item.clone());
        }
        if !object.owners.is_empty() {
            self.owners.insert(item.clone(), object.owners.clone());
        }
        if object.waits_for_dependents {
            self.waiting.insert(object.uid.clone(), item.clone());
        }
        concerned.remove(&item);
        std::iter::once(item).chain(concerned).collect()
    }

    /// Returns what an object owns.
    pub(super) fn dependents(&self, uid: &str) -> impl Iterator<Item = &Item> {
        self.dependents.get(uid).into_iter().flatten()
    }

    pub(super) fn has_dependents(&self, uid: &str) -> bool {
        self.dependents.contains_key(uid)
    }

    fn forget(&mut self, item: &Item) -> Vec<String> {
        let owners = self.owners.remove(item).unwrap_or_default();
        for uid in &owners {
            if let Some(dependents) = self.dependents.get_mut(uid) {
                dependents.remove(item);
                if dependents.is_empty() {
                    self.dependents.remove(uid);
                }
            }
        }
        owners
    }
}

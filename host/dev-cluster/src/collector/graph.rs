//! The owners and the dependents of each object, collected from the store's notices.

use crate::status::GroupResource;
use crate::store::{Notice, Stored};
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

/// The storage location of one object.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Item {
    pub(super) storage: GroupResource,
    pub(super) key: Arc<str>,
}

/// Dependents by owner, and owners by dependent.
#[derive(Debug, Default)]
pub(super) struct Graph {
    dependents: HashMap<String, BTreeSet<Item>>,
    owners: HashMap<Item, Vec<String>>,
    /// Owners that are being deleted and wait for their dependents, by uid.
    waiting: HashMap<String, Item>,
}

// === impl Graph ===

impl Graph {
    /// Records a write, and returns the objects that the collector has to process because of it.
    pub(super) fn update(&mut self, notice: &Notice) -> Vec<Item> {
        let object: &Stored = &notice.object;
        let item = Item { storage: notice.storage.clone(), key: object.key.clone() };
        let before = self.remove(&item);
        let mut affected: BTreeSet<Item> = BTreeSet::new();
        for uid in before.iter().chain(&object.owners) {
            affected.extend(self.waiting.get(uid).cloned());
        }
        if notice.removed {
            self.waiting.remove(&object.uid);
            affected.extend(self.dependents(&object.uid).cloned());
            return affected.into_iter().collect();
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
        affected.remove(&item);
        std::iter::once(item).chain(affected).collect()
    }

    /// Returns the dependents of an owner.
    pub(super) fn dependents(&self, uid: &str) -> impl Iterator<Item = &Item> {
        self.dependents.get(uid).into_iter().flatten()
    }

    pub(super) fn has_dependents(&self, uid: &str) -> bool {
        self.dependents.contains_key(uid)
    }

    /// Removes a dependent, and returns the uids of its owners.
    fn remove(&mut self, item: &Item) -> Vec<String> {
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

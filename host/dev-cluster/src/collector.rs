//! The garbage collector, which runs in the controller-manager of a real cluster.
//!
//! - It deletes an object once none of its owners exists.
//! - Foreground deletion: it deletes an owner after the dependents that block the deletion.
//! - Orphan deletion: it removes the owner from its dependents before it deletes the owner.
//! - It treats an owner as existing if the owner's kind is not served, or if the owner is namespaced and the
//!   dependent is cluster-scoped, as on a real cluster.
//!
//! The store sends a notice for each write that may concern owners. The collector reads the current state
//! again in the transaction that changes it.

mod graph;
mod owners;

use crate::catalog::Served;
use crate::cluster::Cluster;
use crate::deletion::{self, Options};
use crate::resource::Resource;
use crate::status::StatusError;
use crate::store::{Notice, Stored, Transaction};
use crate::write::{finalizers, meta, meta_mut};
use graph::{Graph, Item};
use owners::Owners;
use serde_json::Value;
use std::sync::Arc;
use tokio::sync::mpsc::UnboundedReceiver;

pub(crate) const ORPHAN: &str = "orphan";
pub(crate) const FOREGROUND: &str = "foregroundDeletion";

/// The collector within one transaction.
struct Collector<'c, 't> {
    transaction: &'c mut Transaction<'t>,
    served: &'c Served,
    graph: &'c Graph,
}

/// A stored object and its resource.
struct Found<'c> {
    resource: &'c Resource,
    stored: Arc<Stored>,
    object: Value,
}

/// Handles the store's notices until the server ends.
pub(crate) async fn run(cluster: Arc<Cluster>, mut notices: UnboundedReceiver<Notice>) {
    let mut graph = Graph::default();
    while let Some(notice) = notices.recv().await {
        let removed_uid = notice.removed.then_some(notice.object.uid.as_str());
        for item in graph.update(&notice) {
            let collected = cluster.write(false, |transaction, served| {
                Collector { transaction, served, graph: &graph }.collect(&item, removed_uid)
            });
            if let Err(error) = collected {
                tracing::warn!(key = %item.key, %error, "the garbage collector cannot process an object");
            }
        }
    }
}

// === impl Collector ===

impl<'c> Collector<'c, '_> {
    /// Deletes an object without existing owners, removes references to missing owners, or continues the
    /// deletion of an object.
    /// `removed_uid` is the uid of an object that was just removed.
    fn collect(&mut self, item: &Item, removed_uid: Option<&str>) -> Result<(), StatusError> {
        let Some(found) = self.find(item)? else {
            return Ok(());
        };
        let Found { resource, stored, object } = &found;
        let finalizers = finalizers(object);
        if !meta(object, "deletionTimestamp").is_empty() {
            return if finalizers.contains(&FOREGROUND) {
                self.delete_dependents(found)
            } else if finalizers.contains(&ORPHAN) {
                self.orphan_dependents(found)
            } else {
                Ok(())
            };
        }
        let owners = Owners::read(self.transaction, self.served, resource, object, removed_uid);
        if owners.all.is_empty() || owners.present.len() == owners.all.len() {
            return Ok(());
        }
        if !owners.present.is_empty() {
            return self.set_owners(found, owners.present);
        }
        let policy = if owners.waits && self.graph.has_dependents(&stored.uid) {
            "Foreground"
        } else if finalizers.contains(&ORPHAN) {
            "Orphan"
        } else if finalizers.contains(&FOREGROUND) {
            "Foreground"
        } else {
            "Background"
        };
        let options = Options { propagation_policy: Some(policy.into()), ..Options::default() };
        deletion::remove(self.transaction, self.served, resource, stored, &options).map(drop)
    }

    /// Deletes the dependents of an owner, then the owner if no remaining dependent blocks its deletion.
    fn delete_dependents(&mut self, owner: Found<'_>) -> Result<(), StatusError> {
        let graph = self.graph;
        let mut blocked = false;
        for item in graph.dependents(&owner.stored.uid) {
            let Some(before) = self.transaction.get(&item.storage, &item.key) else { continue };
            if meta(&before.value()?, "deletionTimestamp").is_empty() {
                self.collect(item, None)?;
            }
            let Some(after) = self.transaction.get(&item.storage, &item.key) else { continue };
            blocked |= owners::blocks(&after.value()?, &owner.stored.uid);
        }
        if blocked { Ok(()) } else { self.remove_finalizer(owner, FOREGROUND) }
    }

    /// Removes an owner from the references of its dependents, then deletes the owner.
    fn orphan_dependents(&mut self, owner: Found<'_>) -> Result<(), StatusError> {
        let graph = self.graph;
        for item in graph.dependents(&owner.stored.uid) {
            if let Some(dependent) = self.find(item)? {
                let references = owners::others(&dependent.object, &owner.stored.uid);
                self.set_owners(dependent, references)?;
            }
        }
        self.remove_finalizer(owner, ORPHAN)
    }

    /// Reads an object from the store; `None` if the object is gone or its resource is not served.
    fn find(&self, item: &Item) -> Result<Option<Found<'c>>, StatusError> {
        let served: &'c Served = self.served;
        let resource = served
            .resources()
            .iter()
            .find(|resource| resource.storage == item.storage && resource.view.is_none());
        let stored = self.transaction.get(&item.storage, &item.key);
        let (Some(resource), Some(stored)) = (resource, stored) else {
            return Ok(None);
        };
        let object = stored.value()?;
        Ok(Some(Found { resource, stored, object }))
    }

    fn set_owners(&mut self, found: Found<'_>, references: Vec<Value>) -> Result<(), StatusError> {
        self.set_metadata(found, "ownerReferences", references)
    }

    fn remove_finalizer(&mut self, found: Found<'_>, name: &str) -> Result<(), StatusError> {
        let others = finalizers(&found.object).into_iter().filter(|finalizer| *finalizer != name);
        let others = others.map(Value::from).collect();
        self.set_metadata(found, "finalizers", others)
    }

    /// Writes a list into the metadata of an object, or removes the field if the list is empty. Deletes the
    /// object if its deletion waited for nothing else.
    fn set_metadata(&mut self, found: Found<'_>, field: &str, list: Vec<Value>) -> Result<(), StatusError> {
        let Found { resource, stored, mut object } = found;
        let metadata = meta_mut(&mut object);
        if list.is_empty() {
            metadata.shift_remove(field);
        } else {
            metadata.insert(field.into(), list.into());
        }
        deletion::settle(self.transaction, self.served, resource, &stored, object)
    }
}

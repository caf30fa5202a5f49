//! The garbage collector: what a cluster's controller-manager does about owners and what they own.
//!
//! - What has no owner any more is deleted.
//! - An owner that is deleted in the foreground waits for what blocks it, one that is to leave orphans for these to be
//!   let go.
//! - Owners of a kind that is not served, and owners in a namespace of what is in none, are left alone, as on a real cluster.
//!
//! The store notes what may concern it; everything is looked at again in the transaction that acts on it.

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

/// Follows the store until the server ends.
pub(crate) async fn run(cluster: Arc<Cluster>, mut notices: UnboundedReceiver<Notice>) {
    let mut graph = Graph::default();
    while let Some(notice) = notices.recv().await {
        let gone = notice.removed.then_some(notice.object.uid.as_str());
        for item in graph.note(&notice) {
            let done =
                cluster.write(false, |transaction, served| collect(transaction, served, &graph, &item, gone));
            if let Err(error) = done {
                tracing::warn!(key = %item.key, %error, "the garbage collector leaves an object alone");
            }
        }
    }
}

/// Does what is to be done about one object now.
fn collect(
    transaction: &mut Transaction<'_>,
    served: &Served,
    graph: &Graph,
    item: &Item,
    gone: Option<&str>,
) -> Result<(), StatusError> {
    let found = served
        .resources()
        .iter()
        .find(|resource| resource.storage == item.storage && resource.view.is_none());
    let (Some(resource), Some(stored)) = (found, transaction.get(&item.storage, &item.key)) else {
        return Ok(());
    };
    let object = stored.value()?;
    if !meta(&object, "deletionTimestamp").is_empty() {
        let held = finalizers(&object);
        return if held.contains(&FOREGROUND) {
            delete_dependents(transaction, served, graph, resource, &stored, object)
        } else if held.contains(&ORPHAN) {
            let_go(transaction, served, graph, resource, &stored, object)
        } else {
            Ok(())
        };
    }
    let owners = Owners::read(transaction, served, resource, &object, gone);
    if owners.all.is_empty() {
        return Ok(());
    }
    if !owners.present.is_empty() {
        if owners.present.len() < owners.all.len() {
            return rewrite_owners(transaction, served, resource, &stored, object, owners.present);
        }
        return Ok(());
    }
    let held = finalizers(&object);
    let policy = if owners.waits && graph.has_dependents(&stored.uid) {
        "Foreground"
    } else if held.contains(&ORPHAN) {
        "Orphan"
    } else if held.contains(&FOREGROUND) {
        "Foreground"
    } else {
        "Background"
    };
    let options = Options { propagation_policy: Some(policy.into()), ..Options::default() };
    deletion::remove(transaction, served, resource, &stored, &options).map(drop)
}

/// Deletes what an object owns, and lets the object go once nothing is left that blocks it.
fn delete_dependents(
    transaction: &mut Transaction<'_>,
    served: &Served,
    graph: &Graph,
    resource: &Arc<Resource>,
    owner: &Arc<Stored>,
    mut object: Value,
) -> Result<(), StatusError> {
    let dependents: Vec<Item> = graph.dependents(&owner.uid).cloned().collect();
    let mut blocked = false;
    for item in dependents {
        let Some(before) = transaction.get(&item.storage, &item.key) else { continue };
        if meta(&before.value()?, "deletionTimestamp").is_empty() {
            collect(transaction, served, graph, &item, None)?;
        }
        let Some(after) = transaction.get(&item.storage, &item.key) else { continue };
        blocked |= owners::blocks(&after.value()?, &owner.uid);
    }
    if !blocked {
        drop_finalizer(&mut object, FOREGROUND);
        return deletion::settle(transaction, served, resource, owner, object);
    }
    Ok(())
}

/// Takes an object's name off what it owns, and lets the object go.
fn let_go(
    transaction: &mut Transaction<'_>,
    served: &Served,
    graph: &Graph,
    resource: &Arc<Resource>,
    owner: &Arc<Stored>,
    mut object: Value,
) -> Result<(), StatusError> {
    for item in graph.dependents(&owner.uid).cloned().collect::<Vec<_>>() {
        let found = served.resources().iter().find(|one| one.storage == item.storage && one.view.is_none());
        let (Some(of_item), Some(stored)) = (found, transaction.get(&item.storage, &item.key)) else {
            continue;
        };
        let dependent = stored.value()?;
        let left = owners::others(&dependent, &owner.uid);
        rewrite_owners(transaction, served, of_item, &stored, dependent, left)?;
    }
    drop_finalizer(&mut object, ORPHAN);
    deletion::settle(transaction, served, resource, owner, object)
}

fn rewrite_owners(
    transaction: &mut Transaction<'_>,
    served: &Served,
    resource: &Arc<Resource>,
    stored: &Arc<Stored>,
    mut object: Value,
    left: Vec<Value>,
) -> Result<(), StatusError> {
    let metadata = meta_mut(&mut object);
    if left.is_empty() {
        metadata.shift_remove("ownerReferences");
    } else {
        metadata.insert("ownerReferences".into(), left.into());
    }
    deletion::settle(transaction, served, resource, stored, object)
}

fn drop_finalizer(object: &mut Value, name: &str) {
    let left: Vec<Value> =
        finalizers(object).into_iter().filter(|held| *held != name).map(Value::from).collect();
    let metadata = meta_mut(object);
    if left.is_empty() {
        metadata.shift_remove("finalizers");
    } else {
        metadata.insert("finalizers".into(), left.into());
    }
}

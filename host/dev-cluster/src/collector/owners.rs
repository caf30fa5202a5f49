//! The owner references of an object, and which of these owners exist.

use super::FOREGROUND;
use crate::catalog::Served;
use crate::resource::Resource;
use crate::store::Transaction;
use crate::write::{finalizers, meta};
use serde_json::Value;

/// The owner references of one object.
pub(super) struct Owners {
    pub(super) all: Vec<Value>,
    /// References to owners that exist, or that the collector treats as existing.
    pub(super) present: Vec<Value>,
    /// One of the other owners is being deleted and waits for its dependents.
    pub(super) waits: bool,
}

// === impl Owners ===

impl Owners {
    /// Reads an object's owners. `removed_uid` is the uid of an object that was just removed; its kind may no
    /// longer be served.
    pub(super) fn read(
        transaction: &Transaction<'_>,
        served: &Served,
        resource: &Resource,
        object: &Value,
        removed_uid: Option<&str>,
    ) -> Self {
        let all = references(object);
        let mut owners = Self { all: all.clone(), present: Vec::new(), waits: false };
        for reference in all {
            let text = |field: &str| reference.get(field).and_then(Value::as_str).unwrap_or_default();
            let kind = served
                .resources()
                .iter()
                .find(|kind| kind.kind == text("kind") && kind.api_version() == text("apiVersion"));
            let Some(kind) = kind else {
                if removed_uid != Some(text("uid")) {
                    owners.present.push(reference);
                }
                continue;
            };
            if kind.namespaced && !resource.namespaced {
                owners.present.push(reference);
                continue;
            }
            let key = kind.key(meta(object, "namespace"), text("name"));
            let Some(owner) = transaction.get(&kind.storage, &key).filter(|owner| owner.uid == text("uid"))
            else {
                continue;
            };
            let waits = owner.value().is_ok_and(|owner| {
                !meta(&owner, "deletionTimestamp").is_empty() && finalizers(&owner).contains(&FOREGROUND)
            });
            if waits {
                owners.waits = true;
            } else {
                owners.present.push(reference);
            }
        }
        owners
    }
}

/// Returns whether an object blocks the deletion of an owner.
pub(super) fn blocks(object: &Value, owner: &str) -> bool {
    references(object)
        .iter()
        .any(|reference| reference["uid"] == owner && reference["blockOwnerDeletion"] == true)
}

/// Returns the owner references of an object without those to one owner.
pub(super) fn others(object: &Value, owner: &str) -> Vec<Value> {
    references(object).into_iter().filter(|reference| reference["uid"] != owner).collect()
}

fn references(object: &Value) -> Vec<Value> {
    object.pointer("/metadata/ownerReferences").and_then(Value::as_array).cloned().unwrap_or_default()
}

//! The owners that an object names, and which of them there are.

use super::FOREGROUND;
use crate::catalog::Served;
use crate::resource::Resource;
use crate::store::Transaction;
use crate::write::{finalizers, meta};
use serde_json::Value;

/// An object's owners, taken apart by what they are.
pub(super) struct Owners {
    pub(super) all: Vec<Value>,
    /// Those that are there, or of whom nothing can be said.
    pub(super) present: Vec<Value>,
    /// One of the others is being deleted and waits for its dependents.
    pub(super) waits: bool,
}

// === impl Owners ===

impl Owners {
    /// Looks an object's owners up. `gone` is one that has just been removed, whose kind may not be served any more.
    pub(super) fn read(
        transaction: &Transaction<'_>,
        served: &Served,
        resource: &Resource,
        object: &Value,
        gone: Option<&str>,
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
                if gone != Some(text("uid")) {
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

/// Returns whether an object holds up the deletion of an owner.
pub(super) fn blocks(object: &Value, owner: &str) -> bool {
    references(object)
        .iter()
        .any(|reference| reference["uid"] == owner && reference["blockOwnerDeletion"] == true)
}

/// Returns an object's owners but for one.
pub(super) fn others(object: &Value, owner: &str) -> Vec<Value> {
    references(object).into_iter().filter(|reference| reference["uid"] != owner).collect()
}

fn references(object: &Value) -> Vec<Value> {
    object.pointer("/metadata/ownerReferences").and_then(Value::as_array).cloned().unwrap_or_default()
}

//! The life of a namespace, which on a real cluster controllers look after.
//!
//! A new namespace gets its ServiceAccount `default`. A deleted one is emptied in the same moment: objects without
//! finalizers go, the others are marked; it goes itself when the last of them has gone. (A bare API server without a
//! controller-manager would leave it Terminating for ever.) There is no `kube-root-ca.crt`.

use crate::call::now;
use crate::catalog::Served;
use crate::definitions;
use crate::deletion::{self, Options};
use crate::resource::Resource;
use crate::status::{Cause, GroupResource, StatusError};
use crate::store::{Stored, Transaction};
use crate::write::{finalizers, meta, meta_mut};
use serde_json::{Value, json};
use std::sync::Arc;

/// The namespaces that are there from the start.
pub(crate) const INITIAL: &[&str] = &["default", "kube-node-lease", "kube-public", "kube-system"];
/// The namespaces that cannot be deleted.
const PROTECTED: &[&str] = &["default", "kube-public", "kube-system"];

fn namespaces(served: &Served) -> Result<&Arc<Resource>, StatusError> {
    served.builtin("", "namespaces").ok_or_else(|| StatusError::internal("namespaces are not served"))
}

fn find(transaction: &Transaction<'_>, namespace: &str) -> Option<Arc<Stored>> {
    transaction.get(&GroupResource::new("", "namespaces"), namespace)
}

/// Refuses to create something in a namespace that is not there, or that is going.
pub(crate) fn require_active(
    transaction: &Transaction<'_>,
    namespace: &str,
    resource: &GroupResource,
    name: &str,
) -> Result<(), StatusError> {
    let found = find(transaction, namespace)
        .ok_or_else(|| StatusError::not_found(&GroupResource::new("", "namespaces"), namespace))?;
    if meta(&found.value()?, "deletionTimestamp").is_empty() {
        return Ok(());
    }
    let why = format!("unable to create new content in namespace {namespace} because it is being terminated");
    Err(StatusError::forbidden(resource, name, why).with_causes(vec![Cause::new(
        "NamespaceTerminating",
        "metadata.namespace",
        format!("namespace {namespace} is being terminated"),
    )]))
}

/// Gives a new namespace its default ServiceAccount.
pub(crate) fn furnish(
    transaction: &mut Transaction<'_>,
    served: &Served,
    namespace: &str,
) -> Result<(), StatusError> {
    let accounts = served
        .builtin("", "serviceaccounts")
        .ok_or_else(|| StatusError::internal("serviceaccounts are not served"))?;
    let key = accounts.key(namespace, "default");
    if transaction.get(&accounts.storage, &key).is_none() {
        let account = json!({"metadata": {
            "name": "default", "namespace": namespace, "uid": uuid::Uuid::new_v4().to_string(),
            "resourceVersion": "", "creationTimestamp": now(),
        }});
        transaction.put(accounts, &key, account);
    }
    Ok(())
}

/// Returns true if the namespace still waits for its contents to go.
pub(crate) fn is_held(resource: &Resource, object: &Value) -> bool {
    let held = object.pointer("/spec/finalizers").and_then(Value::as_array);
    resource.is("", "namespaces") && held.is_some_and(|finalizers| !finalizers.is_empty())
}

/// Refuses to delete a namespace that everything depends on.
pub(crate) fn require_deletable(resource: &Resource, name: &str) -> Result<(), StatusError> {
    if resource.is("", "namespaces") && PROTECTED.contains(&name) {
        let why = "this namespace may not be deleted";
        return Err(StatusError::forbidden(&resource.group_resource(), name, why));
    }
    Ok(())
}

/// Marks a namespace as going, empties it, and removes it unless something in it stays.
pub(crate) fn terminate(
    transaction: &mut Transaction<'_>,
    served: &Served,
    mut namespace: Value,
) -> Result<Arc<Stored>, StatusError> {
    let resource = namespaces(served)?;
    let name = meta(&namespace, "name").to_owned();
    meta_mut(&mut namespace).insert("deletionTimestamp".into(), now().into());
    namespace["status"]["phase"] = "Terminating".into();
    let marked = transaction.put(resource, &name, namespace);
    let prefix = format!("{name}/");
    for contents in served.namespaced_storages() {
        for object in transaction.objects(&contents.storage, &prefix) {
            deletion::delete(transaction, contents, &object, &Options::at_once())?;
        }
        definitions::settle(transaction, served, contents)?;
    }
    settle(transaction, served, &name)?;
    Ok(marked)
}

/// Removes a namespace that is going, if nothing is left in it. To be called after every removal.
pub(crate) fn settle(
    transaction: &mut Transaction<'_>,
    served: &Served,
    namespace: &str,
) -> Result<(), StatusError> {
    let Some(found) = find(transaction, namespace) else {
        return Ok(());
    };
    let mut value = found.value()?;
    if meta(&value, "deletionTimestamp").is_empty() {
        return Ok(());
    }
    let prefix = format!("{namespace}/");
    let is_empty = |contents: &&Arc<Resource>| transaction.objects(&contents.storage, &prefix).is_empty();
    if !served.namespaced_storages().iter().all(is_empty) {
        return Ok(());
    }
    let resource = namespaces(served)?;
    // Those of others are for `finalize`.
    let held = value.pointer("/spec/finalizers").and_then(Value::as_array).cloned().unwrap_or_default();
    let others: Vec<Value> = held.iter().filter(|name| **name != "kubernetes").cloned().collect();
    if others.len() == held.len() && !held.is_empty() {
        return Ok(());
    }
    let removable = others.is_empty() && finalizers(&value).is_empty();
    if let Some(spec) = value.get_mut("spec").and_then(Value::as_object_mut) {
        if others.is_empty() {
            spec.shift_remove("finalizers");
        } else {
            spec.insert("finalizers".into(), others.into());
        }
    }
    if removable {
        transaction.remove(resource, namespace, value);
    } else {
        transaction.put(resource, namespace, value);
    }
    Ok(())
}

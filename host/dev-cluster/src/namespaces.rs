//! The lifecycle of namespaces, which controllers implement on a real cluster.
//!
//! A new namespace gets the ServiceAccount `default`, and no `kube-root-ca.crt`. Deleting a namespace deletes
//! its objects at once; objects with finalizers are only marked. The server removes the namespace together
//! with its last object. (A bare API server without a controller-manager keeps it Terminating.)

use crate::catalog::Served;
use crate::definitions;
use crate::deletion::{self, Options};
use crate::resource::Resource;
use crate::status::{Cause, GroupResource, StatusError};
use crate::store::{Stored, Transaction};
use crate::write::{finalizers, meta, meta_mut};
use serde_json::{Value, json};
use std::sync::Arc;

/// The namespaces that exist from the start.
pub(crate) const INITIAL: &[&str] = &["default", "kube-node-lease", "kube-public", "kube-system"];
/// The namespaces that cannot be deleted.
const PROTECTED: &[&str] = &["default", "kube-public", "kube-system"];

fn namespaces(served: &Served) -> Result<&Arc<Resource>, StatusError> {
    served.builtin("", "namespaces").ok_or_else(|| StatusError::internal("namespaces are not served"))
}

fn find(transaction: &Transaction<'_>, namespace: &str) -> Option<Arc<Stored>> {
    transaction.get(&GroupResource::new("", "namespaces"), namespace)
}

/// Refuses to create an object in a namespace that is missing or being deleted.
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

/// Creates the default ServiceAccount of a new namespace.
pub(crate) fn create_default_account(
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
            "name": "default", "namespace": namespace, "uid": transaction.generated.uid(),
            "resourceVersion": "", "creationTimestamp": transaction.generated.now(),
        }});
        transaction.put(accounts, &key, account);
    }
    Ok(())
}

/// Returns whether the namespace still waits for its content or a finalizer.
pub(crate) fn is_held(resource: &Resource, object: &Value) -> bool {
    let finalizers = object.pointer("/spec/finalizers").and_then(Value::as_array);
    resource.is("", "namespaces") && finalizers.is_some_and(|finalizers| !finalizers.is_empty())
}

/// Refuses to delete a protected namespace.
pub(crate) fn require_deletable(resource: &Resource, name: &str) -> Result<(), StatusError> {
    if resource.is("", "namespaces") && PROTECTED.contains(&name) {
        let why = "this namespace may not be deleted";
        return Err(StatusError::forbidden(&resource.group_resource(), name, why));
    }
    Ok(())
}

/// Marks a namespace as being deleted, deletes its content, and removes the namespace if nothing remains.
pub(crate) fn terminate(
    transaction: &mut Transaction<'_>,
    served: &Served,
    mut namespace: Value,
) -> Result<Arc<Stored>, StatusError> {
    let resource = namespaces(served)?;
    let name = meta(&namespace, "name").to_owned();
    meta_mut(&mut namespace).insert("deletionTimestamp".into(), transaction.generated.now().into());
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

/// Removes a namespace that is being deleted and is empty. Must be called after every removal.
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
    // Other finalizers are removed through `finalize`.
    let spec_finalizers =
        value.pointer("/spec/finalizers").and_then(Value::as_array).cloned().unwrap_or_default();
    let others: Vec<Value> = spec_finalizers.iter().filter(|name| **name != "kubernetes").cloned().collect();
    if others.len() == spec_finalizers.len() && !spec_finalizers.is_empty() {
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

//! The deletion of objects: at once, after the finalizers, or after the grace period.

use crate::catalog::Served;
use crate::collector::{FOREGROUND, ORPHAN};
use crate::definitions;
use crate::generated::Generated;
use crate::namespaces;
use crate::resource::Resource;
use crate::status::{Cause, GroupKind, StatusError};
use crate::store::{Stored, Transaction};
use crate::write::{finalizers, is_definition, meta, meta_mut};
use serde::Deserialize;
use serde_json::Value;
use std::sync::Arc;

/// `metav1.DeleteOptions`, from the body or the query.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Options {
    pub(crate) grace_period_seconds: Option<i64>,
    pub(crate) preconditions: Option<Preconditions>,
    pub(crate) propagation_policy: Option<String>,
    pub(crate) orphan_dependents: Option<bool>,
    pub(crate) dry_run: Option<Vec<String>>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Preconditions {
    pub(crate) uid: Option<String>,
    pub(crate) resource_version: Option<String>,
}

/// The outcome of a deletion.
#[derive(Debug)]
pub(crate) enum Outcome {
    Removed(Arc<Stored>),
    /// The object is marked as being deleted, now or before.
    Waiting(Arc<Stored>),
}

// === impl Options ===

impl Options {
    /// Returns options without a grace period, as for the content of a namespace. Finalizers still apply.
    pub(crate) fn at_once() -> Self {
        let propagation_policy = Some("Background".into());
        Self { grace_period_seconds: Some(0), propagation_policy, ..Self::default() }
    }

    fn propagation(&self) -> Option<&str> {
        match (self.propagation_policy.as_deref(), self.orphan_dependents) {
            (Some(policy), _) => Some(policy),
            (None, Some(true)) => Some("Orphan"),
            (None, Some(false)) => Some("Background"),
            (None, None) => None,
        }
    }

    /// Returns whether the client chose a propagation policy.
    pub(crate) fn has_propagation_policy(&self) -> bool {
        self.propagation().is_some()
    }

    /// Refuses an unknown propagation policy.
    pub(crate) fn check_policy(&self) -> Result<(), StatusError> {
        match self.propagation_policy.as_deref() {
            None | Some("Foreground" | "Background" | "Orphan") => Ok(()),
            Some(other) => Err(StatusError::invalid(
                &GroupKind::new("meta.k8s.io", "DeleteOptions"),
                "",
                vec![Cause::new(
                    "FieldValueNotSupported",
                    "propagationPolicy",
                    format!(
                        "Unsupported value: {other:?}: supported values: \"Foreground\", \"Background\", \"Orphan\", \"nil\""
                    ),
                )],
            )),
        }
    }

    /// Refuses the deletion unless the preconditions hold.
    pub(crate) fn check(&self, resource: &Resource, object: &Stored) -> Result<(), StatusError> {
        match &self.preconditions {
            Some(preconditions) => preconditions.check_stored(resource, object),
            None => Ok(()),
        }
    }
}

// === impl Preconditions ===

impl Preconditions {
    /// Refuses unless the stored object meets the preconditions.
    pub(crate) fn check_stored(&self, resource: &Resource, object: &Stored) -> Result<(), StatusError> {
        let conflict = |why: String| {
            // kube-apiserver names the kind here, the resource elsewhere.
            let named = crate::status::GroupResource::new(&resource.group, &resource.kind);
            Err(StatusError::conflict(&named, &object.name, why))
        };
        match &self.uid {
            Some(uid) if *uid != object.uid => {
                return conflict(format!(
                    "the UID in the precondition ({uid}) does not match the UID in record ({}). The object might have \
                     been deleted and then recreated",
                    object.uid
                ));
            }
            _ => {}
        }
        match &self.resource_version {
            Some(version) if version.parse() != Ok(object.revision) => conflict(format!(
                "the ResourceVersion in the precondition ({version}) does not match the ResourceVersion in record \
                 ({}). The object might have been modified",
                object.revision
            )),
            _ => Ok(()),
        }
    }
}

/// Deletes one object and everything that depends on it: the content of a namespace, the instances of a
/// definition, and namespaces and definitions whose deletion waited for this object.
pub(crate) fn remove(
    transaction: &mut Transaction<'_>,
    served: &Served,
    resource: &Resource,
    object: &Arc<Stored>,
    options: &Options,
) -> Result<Outcome, StatusError> {
    namespaces::require_deletable(resource, &object.name)?;
    if resource.is("", "namespaces") {
        let namespace = object.value()?;
        if !meta(&namespace, "deletionTimestamp").is_empty() {
            return Ok(Outcome::Waiting(object.clone()));
        }
        return Ok(Outcome::Waiting(namespaces::terminate(transaction, served, namespace)?));
    }
    let mut object = object.clone();
    if is_definition(resource) {
        object = definitions::remove_instances(transaction, served, resource, &object)?;
    }
    let outcome = delete(transaction, resource, &object, options)?;
    definitions::settle(transaction, served, resource)?;
    namespaces::settle(transaction, served, &object.namespace)?;
    Ok(outcome)
}

/// Deletes one object, or marks it as being deleted.
///
/// Sets the finalizers `foregroundDeletion` and `orphan` if the client asks for them. The garbage collector
/// removes them; without a garbage collector a client must.
pub(crate) fn delete(
    transaction: &mut Transaction<'_>,
    resource: &Resource,
    object: &Arc<Stored>,
    options: &Options,
) -> Result<Outcome, StatusError> {
    let mut value = object.value()?;
    let policy = options.propagation().or_else(|| default_policy(resource, &value));
    let changed = set_propagation(&mut value, policy);
    let has_finalizers = !finalizers(&value).is_empty();
    let being_deleted = !meta(&value, "deletionTimestamp").is_empty();
    let old_grace = value.pointer("/metadata/deletionGracePeriodSeconds").and_then(Value::as_i64);
    let mut grace = grace(resource, &value, options);
    let is_pod = resource.is("", "pods");
    if being_deleted {
        // A second delete can only shorten the grace period or change the propagation policy.
        grace = grace.min(old_grace.unwrap_or(0));
        let shortened = is_pod && Some(grace) != old_grace;
        if (has_finalizers || grace > 0) && !shortened && !changed {
            return Ok(Outcome::Waiting(object.clone()));
        }
        if shortened {
            mark(&mut value, grace, transaction.generated);
        }
    } else if has_finalizers || is_pod {
        mark(&mut value, grace, transaction.generated);
        let generation = value.pointer("/metadata/generation").and_then(Value::as_i64);
        if let (Some(generation), true) = (generation, resource.model.counts_generations()) {
            meta_mut(&mut value).insert("generation".into(), (generation + 1).into());
        }
    }
    Ok(if has_finalizers || grace > 0 {
        Outcome::Waiting(transaction.put(resource, &object.key, value))
    } else {
        Outcome::Removed(transaction.remove(resource, &object.key, value))
    })
}

fn mark(value: &mut Value, grace: i64, generated: &Generated) {
    let metadata = meta_mut(value);
    metadata.insert("deletionTimestamp".into(), generated.in_seconds(grace).into());
    metadata.insert("deletionGracePeriodSeconds".into(), grace.into());
}

/// Returns the grace period. Only a Pod on a node has one.
fn grace(resource: &Resource, value: &Value, options: &Options) -> i64 {
    let text = |pointer: &str| value.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    if !resource.is("", "pods") {
        return 0;
    }
    if text("/spec/nodeName").is_empty() || matches!(text("/status/phase"), "Succeeded" | "Failed") {
        return 0;
    }
    let of_pod = value.pointer("/spec/terminationGracePeriodSeconds").and_then(Value::as_i64);
    options.grace_period_seconds.or(of_pod).unwrap_or(30).max(0)
}

/// Returns the default policy: Jobs and ReplicationControllers, which are older than the garbage collector,
/// orphan their dependents.
fn default_policy(resource: &Resource, value: &Value) -> Option<&'static str> {
    let old = resource.is("batch", "jobs") || resource.is("", "replicationcontrollers");
    let has_policy = finalizers(value).iter().any(|name| matches!(*name, ORPHAN | FOREGROUND));
    (old && !has_policy).then_some("Orphan")
}

/// Stores a changed object, or removes it if its deletion waited only for this change.
pub(crate) fn settle(
    transaction: &mut Transaction<'_>,
    served: &Served,
    resource: &Resource,
    stored: &Arc<Stored>,
    value: Value,
) -> Result<(), StatusError> {
    let being_deleted = !meta(&value, "deletionTimestamp").is_empty();
    let grace = value.pointer("/metadata/deletionGracePeriodSeconds").and_then(Value::as_i64).unwrap_or(0);
    if being_deleted && grace == 0 && finalizers(&value).is_empty() && !namespaces::is_held(resource, &value)
    {
        transaction.remove(resource, &stored.key, value);
        definitions::settle(transaction, served, resource)?;
        namespaces::settle(transaction, served, &stored.namespace)?;
    } else {
        transaction.put(resource, &stored.key, value);
    }
    Ok(())
}

/// Sets the finalizers of a propagation policy; returns whether they changed.
fn set_propagation(value: &mut Value, policy: Option<&str>) -> bool {
    let Some(policy) = policy else {
        return false;
    };
    let wanted = match policy {
        "Orphan" => Some(ORPHAN),
        "Foreground" => Some(FOREGROUND),
        _ => None,
    };
    let before: Vec<String> = finalizers(value).into_iter().map(str::to_owned).collect();
    let mut after: Vec<String> =
        before.iter().filter(|name| !matches!(name.as_str(), ORPHAN | FOREGROUND)).cloned().collect();
    after.extend(wanted.map(str::to_owned));
    if after == before {
        return false;
    }
    meta_mut(value).insert("finalizers".into(), after.into());
    true
}

//! How an object goes: at once, after its finalizers, or after its grace period.

use crate::call::{format_time, now};
use crate::catalog::Served;
use crate::collector::{FOREGROUND, ORPHAN};
use crate::definitions;
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

/// What became of the object.
#[derive(Debug)]
pub(crate) enum Outcome {
    Removed(Arc<Stored>),
    /// Marked as going, or marked before.
    Waiting(Arc<Stored>),
}

// === impl Options ===

impl Options {
    /// Returns the options of a deletion that waits for finalizers only, as that of a whole namespace.
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

    /// Returns whether it was asked for what is to become of what the object owns.
    pub(crate) fn says_what_becomes_of_dependents(&self) -> bool {
        self.propagation().is_some()
    }

    /// Refuses a propagation policy that is none.
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

    /// Refuses if the object is not the one that the client means.
    pub(crate) fn check(&self, resource: &Resource, object: &Stored) -> Result<(), StatusError> {
        match &self.preconditions {
            Some(preconditions) => preconditions.check_stored(resource, object),
            None => Ok(()),
        }
    }
}

// === impl Preconditions ===

impl Preconditions {
    /// Refuses if the object is not the one that is meant.
    pub(crate) fn check_stored(&self, resource: &Resource, object: &Stored) -> Result<(), StatusError> {
        let conflict = |why: String| {
            // The real server names the kind here, where it names the resource elsewhere.
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

/// Deletes one object with all that follows from it: what a namespace or a definition holds goes too, and what waited for
/// this object alone.
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

/// Deletes one object, as far as it lets itself be deleted now.
///
/// The finalizers `foregroundDeletion` and `orphan` are set when asked for; the garbage collector takes them off, or a
/// client where there is none.
pub(crate) fn delete(
    transaction: &mut Transaction<'_>,
    resource: &Resource,
    object: &Arc<Stored>,
    options: &Options,
) -> Result<Outcome, StatusError> {
    let mut value = object.value()?;
    let policy = options.propagation().or_else(|| default_policy(resource, &value));
    let changed = set_propagation(&mut value, policy);
    let held = !finalizers(&value).is_empty();
    let going = !meta(&value, "deletionTimestamp").is_empty();
    let old_grace = value.pointer("/metadata/deletionGracePeriodSeconds").and_then(Value::as_i64);
    let mut grace = grace(resource, &value, options);
    let is_pod = resource.is("", "pods");
    if going {
        // A second delete can only make it quicker, or change what becomes of the dependents.
        grace = grace.min(old_grace.unwrap_or(0));
        let quicker = is_pod && Some(grace) != old_grace;
        if (held || grace > 0) && !quicker && !changed {
            return Ok(Outcome::Waiting(object.clone()));
        }
        if quicker {
            mark(&mut value, grace);
        }
    } else if held || is_pod {
        mark(&mut value, grace);
        let generation = value.pointer("/metadata/generation").and_then(Value::as_i64);
        if let (Some(generation), true) = (generation, resource.model.counts_generations()) {
            meta_mut(&mut value).insert("generation".into(), (generation + 1).into());
        }
    }
    Ok(if held || grace > 0 {
        Outcome::Waiting(transaction.put(resource, &object.key, value))
    } else {
        Outcome::Removed(transaction.remove(resource, &object.key, value))
    })
}

fn mark(value: &mut Value, grace: i64) {
    let metadata = meta_mut(value);
    metadata.insert("deletionTimestamp".into(), in_seconds(grace).into());
    metadata.insert("deletionGracePeriodSeconds".into(), grace.into());
}

/// Only Pods are given time, and only those that run on a node.
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

/// Kinds that are older than the garbage collector leave orphans unless something else is asked for.
fn default_policy(resource: &Resource, value: &Value) -> Option<&'static str> {
    let old = resource.is("batch", "jobs") || resource.is("", "replicationcontrollers");
    let said = finalizers(value).iter().any(|name| matches!(*name, ORPHAN | FOREGROUND));
    (old && !said).then_some("Orphan")
}

/// Stores a changed object, or removes it if that was the last thing its deletion waited for.
pub(crate) fn settle(
    transaction: &mut Transaction<'_>,
    served: &Served,
    resource: &Resource,
    stored: &Arc<Stored>,
    value: Value,
) -> Result<(), StatusError> {
    let going = !meta(&value, "deletionTimestamp").is_empty();
    let grace = value.pointer("/metadata/deletionGracePeriodSeconds").and_then(Value::as_i64).unwrap_or(0);
    if going && grace == 0 && finalizers(&value).is_empty() && !namespaces::is_held(resource, &value) {
        transaction.remove(resource, &stored.key, value);
        definitions::settle(transaction, served, resource)?;
        namespaces::settle(transaction, served, &stored.namespace)?;
    } else {
        transaction.put(resource, &stored.key, value);
    }
    Ok(())
}

/// Returns true if the finalizers were changed.
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

fn in_seconds(seconds: i64) -> String {
    let then = jiff::Timestamp::now().checked_add(jiff::SignedDuration::from_secs(seconds));
    then.map(format_time).unwrap_or_else(|_| now())
}

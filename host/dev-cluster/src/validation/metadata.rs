//! Validates metadata, with the same rules for every kind.

use super::{NameRule, list, map, text};
use crate::status::Cause;
use oarlock_label_selector::validation::{label_key_faults, label_value_faults};
use serde_json::{Value, json};

/// `ValidateObjectMeta`.
pub(crate) fn metadata(object: &Value, namespaced: bool, rule: NameRule) -> Vec<Cause> {
    let mut causes = Vec::new();
    match text(object, "/metadata/name") {
        "" => causes.push(Cause::required("metadata.name", "name or generateName is required")),
        name => causes.extend(
            rule.faults(name).into_iter().map(|why| Cause::invalid("metadata.name", &json!(name), why)),
        ),
    }
    causes.extend(metadata_common(object, namespaced));
    causes
}

/// `ValidateObjectMetaUpdate`, with the checks that run again on every update.
pub(crate) fn metadata_update(new: &Value, old: &Value, namespaced: bool) -> Vec<Cause> {
    let mut causes = Vec::new();
    if !text(old, "/metadata/deletionTimestamp").is_empty() {
        let had = list(old, "/metadata/finalizers");
        let extra: Vec<String> = list(new, "/metadata/finalizers")
            .iter()
            .filter(|one| !had.contains(one))
            .map(Value::to_string)
            .collect();
        if !extra.is_empty() {
            causes.push(Cause::forbidden(
                "metadata.finalizers",
                format!(
                    "no new finalizers can be added if the object is being deleted, found new finalizers []string{{{}}}",
                    extra.join(", ")
                ),
            ));
        }
    }
    for field in
        ["name", "namespace", "uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds"]
    {
        let of = |object: &Value| object.pointer(&format!("/metadata/{field}")).cloned().unwrap_or_default();
        if of(new) != of(old) {
            causes.push(Cause::invalid(format!("metadata.{field}"), &of(new), "field is immutable"));
        }
    }
    causes.extend(metadata_common(new, namespaced));
    causes
}

fn metadata_common(object: &Value, namespaced: bool) -> Vec<Cause> {
    let mut causes = Vec::new();
    let namespace = text(object, "/metadata/namespace");
    if namespaced && namespace.is_empty() {
        causes.push(Cause::required("metadata.namespace", ""));
    } else if !namespaced && !namespace.is_empty() {
        causes.push(Cause::forbidden("metadata.namespace", "not allowed on this type"));
    }
    causes.extend(labels(object, "/metadata/labels", "metadata.labels"));
    let mut size = 0;
    for (key, value) in map(object, "/metadata/annotations") {
        size += key.len() + value.as_str().unwrap_or_default().len();
        for why in label_key_faults(&key.to_lowercase()) {
            causes.push(Cause::invalid("metadata.annotations", &json!(key), why));
        }
    }
    if size > 256 * 1024 {
        causes.push(Cause::new(
            "FieldValueTooLong",
            "metadata.annotations",
            format!("Too long: may not be more than {} bytes", 256 * 1024),
        ));
    }
    causes.extend(owners(object));
    let finalizers = list(object, "/metadata/finalizers");
    for finalizer in finalizers {
        let name = finalizer.as_str().unwrap_or_default();
        for why in label_key_faults(name) {
            causes.push(Cause::invalid("metadata.finalizers", finalizer, why));
        }
    }
    for (index, finalizer) in finalizers.iter().enumerate() {
        let name = finalizer.as_str().unwrap_or_default();
        if !name.contains('/') && !["kubernetes", "orphan", "foregroundDeletion"].contains(&name) {
            causes.push(Cause::invalid(
                format!("metadata.finalizers[{index}]"),
                finalizer,
                "name is neither a standard finalizer name nor is it fully qualified",
            ));
        }
    }
    causes
}

fn owners(object: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    let owners = list(object, "/metadata/ownerReferences");
    let mut controller: Option<String> = None;
    for owner in owners {
        for (field, why) in [
            ("apiVersion", "version must not be empty"),
            ("kind", "must not be empty"),
            ("name", "must not be empty"),
            ("uid", "must not be empty"),
        ] {
            if text(owner, &format!("/{field}")).is_empty() {
                causes.push(Cause::invalid(format!("metadata.ownerReferences.{field}"), &json!(""), why));
            }
        }
        if owner.get("controller") == Some(&json!(true)) {
            let name = format!("{}/{}", text(owner, "/kind"), text(owner, "/name"));
            match &controller {
                Some(first) => causes.push(Cause::invalid(
                    "metadata.ownerReferences",
                    &json!(owners),
                    format!(
                        "Only one reference can have Controller set to true. Found \"true\" in references for {first} and {name}"
                    ),
                )),
                None => controller = Some(name),
            }
        }
    }
    causes
}

fn labels(object: &Value, pointer: &str, path: &str) -> Vec<Cause> {
    let mut causes = Vec::new();
    for (key, value) in map(object, pointer) {
        for why in label_key_faults(key) {
            causes.push(Cause::invalid(path, &json!(key), why));
        }
        for why in label_value_faults(value.as_str().unwrap_or_default()) {
            causes.push(Cause::invalid(path, value, why));
        }
    }
    causes
}

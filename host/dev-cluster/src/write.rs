//! The common steps of create, update and patch, from the client's object to the stored one.

use crate::call::Call;
use crate::catalog::Served;
use crate::certificates;
use crate::definitions;
use crate::generated::{Generated, SUFFIX_LENGTH};
use crate::managed_fields::{self, Writer};
use crate::model::Model;
use crate::namespaces;
use crate::priorities;
use crate::resource::Resource;
use crate::services;
use crate::status::{Cause, GroupKind, StatusError};
use crate::store::{Stored, Transaction};
use crate::subresources;
use serde_json::{Map, Value};
use std::sync::Arc;

const MAX_GENERATED_BASE: usize = 63 - SUFFIX_LENGTH;

/// Returns a metadata field, empty if it is missing.
pub(crate) fn meta<'a>(object: &'a Value, field: &str) -> &'a str {
    object
        .get("metadata")
        .and_then(|metadata| metadata.get(field))
        .and_then(Value::as_str)
        .unwrap_or_default()
}

/// Returns the mutable metadata of an object.
pub(crate) fn meta_mut(object: &mut Value) -> &mut Map<String, Value> {
    if !object.is_object() {
        *object = Value::Object(Map::new());
    }
    if !object["metadata"].is_object() {
        object["metadata"] = Value::Object(Map::new());
    }
    #[expect(clippy::expect_used, reason = "it was just made an object")]
    object["metadata"].as_object_mut().expect("metadata is an object")
}

pub(crate) fn finalizers(object: &Value) -> Vec<&str> {
    let finalizers = object.pointer("/metadata/finalizers").and_then(Value::as_array);
    finalizers.into_iter().flatten().filter_map(Value::as_str).collect()
}

/// Refuses a body whose kind, version or namespace contradicts the path, and fills in the fields that it
/// omits.
pub(crate) fn check_identity(call: &Call, object: &mut Value) -> Result<(), StatusError> {
    let resource = &call.resource;
    if !object.is_object() {
        return Err(StatusError::bad_request(format!(
            "the object provided is unrecognized (must be of type {}): couldn't get version/kind; json parse error: \
             json: cannot unmarshal into Go value of type struct",
            resource.kind
        )));
    }
    let text = |field: &str| object.get(field).and_then(Value::as_str).unwrap_or_default();
    let (kind, api_version) = (text("kind"), text("apiVersion"));
    if resource.custom.is_some() {
        check_custom_type(resource, object, kind, api_version)?;
    } else {
        check_builtin_type(resource, kind, api_version)?;
    }
    let namespace = meta(object, "namespace");
    if resource.namespaced {
        if !namespace.is_empty() && namespace != call.target.namespace {
            return Err(StatusError::bad_request(
                "the namespace of the provided object does not match the namespace sent on the request",
            ));
        }
        meta_mut(object).insert("namespace".into(), call.target.namespace.as_str().into());
    } else if !namespace.is_empty() {
        meta_mut(object).shift_remove("namespace");
    }
    Ok(())
}

/// Custom resources must name their kind and apiVersion.
fn check_custom_type(
    resource: &Resource,
    object: &Value,
    kind: &str,
    api_version: &str,
) -> Result<(), StatusError> {
    let missing = if kind.is_empty() { "Kind" } else { "apiVersion" };
    if kind.is_empty() || api_version.is_empty() {
        return Err(StatusError::bad_request(format!(
            "the object provided is unrecognized (must be of type {}): Object '{missing}' is missing in '{object}' ({})",
            resource.kind,
            beginning(object)
        )));
    }
    let wanted = resource.api_version();
    if api_version != wanted {
        return Err(StatusError::bad_request(format!(
            "the API version in the data ({api_version}) does not match the expected API version ({wanted})"
        )));
    }
    if kind != resource.kind {
        let cause = Cause::invalid("kind", &kind.into(), format!("must be {}", resource.kind));
        let named = GroupKind::new(&resource.group, kind);
        return Err(StatusError::invalid(&named, meta(object, "name"), vec![cause]));
    }
    Ok(())
}

/// Returns the beginning of an object, as errors quote it.
fn beginning(object: &Value) -> String {
    const LENGTH: usize = 30;
    let text = object.to_string();
    match text.char_indices().nth(LENGTH) {
        Some((end, _)) => format!("{} ...", &text[..end]),
        None => text,
    }
}

/// Built-in types may omit kind and apiVersion.
fn check_builtin_type(resource: &Resource, kind: &str, api_version: &str) -> Result<(), StatusError> {
    let kind = if kind.is_empty() { &resource.kind } else { kind };
    let wanted = resource.api_version();
    let api_version = if api_version.is_empty() { &wanted } else { api_version };
    if *kind == resource.kind && *api_version == wanted {
        return Ok(());
    }
    let (group, version) = api_version.rsplit_once('/').unwrap_or(("", api_version));
    // The name of the Go package of the internal type.
    let package = |group: &str| match group.split('.').next().unwrap_or_default() {
        "" | "events" => "core".to_owned(),
        first => first.to_owned(),
    };
    let why = if Model::builtin(group, version, kind).is_some() {
        let (package, wanted) = (package(&resource.group), &resource.kind);
        format!("converting ({version}.{kind}) to ({package}.{wanted}): unknown conversion")
    } else {
        format!(
            "no kind {kind:?} is registered for version {api_version:?} in scheme \"pkg/runtime/scheme.go:111\""
        )
    };
    Err(StatusError::bad_request(format!(
        "{kind} in version {version:?} cannot be handled as a {}: {why}",
        resource.kind
    )))
}

/// Refuses an object whose name differs from the one in the path.
pub(crate) fn check_name(call: &Call, object: &mut Value) -> Result<(), StatusError> {
    let name = meta(object, "name").to_owned();
    let wanted = &call.target.name;
    if name.is_empty() {
        return Err(StatusError::bad_request(format!(
            "the name of the object ({wanted} based on URL) was undeterminable: name must be provided"
        )));
    }
    if name != *wanted {
        return Err(StatusError::bad_request(format!(
            "the name of the object ({name}) does not match the name on the URL ({wanted})"
        )));
    }
    Ok(())
}

/// Refuses an object whose uid differs from the stored one.
pub(crate) fn check_uid(call: &Call, object: &Value, current: &Stored) -> Result<(), StatusError> {
    let uid = meta(object, "uid");
    if uid.is_empty() || uid == current.uid {
        return Ok(());
    }
    let why = format!(
        "StorageError: invalid object, Code: 4, Key: /registry/{}/{}, ResourceVersion: 0, AdditionalErrorMsg: \
         Precondition failed: UID in precondition: {uid}, UID in object meta: {}",
        call.resource.plural, current.key, current.uid
    );
    Err(StatusError::conflict(&call.resource.group_resource(), &call.target.name, why))
}

/// Generates a name from generateName for an object without a name.
pub(crate) fn generate_name(object: &mut Value, generated: &Generated) {
    let base = meta(object, "generateName").to_owned();
    if meta(object, "name").is_empty() && !base.is_empty() {
        let mut base = base;
        base.truncate(base.floor_char_boundary(MAX_GENERATED_BASE));
        base.push_str(&generated.suffix());
        meta_mut(object).insert("name".into(), base.into());
    }
}

/// Stores a decoded object as a new one.
pub(crate) fn create(
    call: &Call,
    transaction: &mut Transaction<'_>,
    mut object: Value,
    writer: Option<Writer<'_>>,
) -> Result<Arc<Stored>, StatusError> {
    let resource = &call.resource;
    if resource.namespaced {
        namespaces::require_active(
            transaction,
            &call.target.namespace,
            &resource.group_resource(),
            meta(&object, "name"),
        )?;
    }
    // kube-apiserver's storage refuses this, and a dry run does not reach the storage.
    if !meta(&object, "resourceVersion").is_empty() && !call.query.dry_run()? {
        return Err(StatusError::untranslated("resourceVersion should not be set on objects to be created"));
    }
    if let Some(writer) = writer {
        managed_fields::after_update(call.model(), None, &mut object, writer);
    }
    generate_name(&mut object, transaction.generated);
    let counts = call.model().counts_generations();
    let metadata = meta_mut(&mut object);
    for field in ["selfLink", "deletionTimestamp", "deletionGracePeriodSeconds", "resourceVersion"] {
        metadata.shift_remove(field);
    }
    metadata.insert("uid".into(), transaction.generated.uid().into());
    metadata.insert("creationTimestamp".into(), transaction.generated.now().into());
    if counts {
        metadata.insert("generation".into(), 1.into());
    }
    call.model().prepare_create(&mut object);
    if certificates::is_request(resource) {
        certificates::sign(call, &mut object);
    }
    if resource.is("", "pods") {
        priorities::admit(transaction, &mut object)?;
    }
    if resource.is("", "services") {
        call.cluster.cluster_ips.assign(&mut object);
    }
    call.model().validate_create(&object)?;
    let key = resource.key(&call.target.namespace, meta(&object, "name"));
    if transaction.get(&resource.storage, &key).is_some() {
        return Err(StatusError::already_exists(&resource.group_resource(), meta(&object, "name")));
    }
    check_rights_granted(call, &object)?;
    Ok(transaction.put(resource, &key, resource.stored(object)))
}

/// Stores a changed object, or removes it if its deletion waited only for this change. Returns the stored or
/// removed object.
pub(crate) fn update(
    call: &Call,
    transaction: &mut Transaction<'_>,
    served: &Served,
    current: &Stored,
    old: &Value,
    mut new: Value,
    writer: Option<Writer<'_>>,
) -> Result<Arc<Stored>, StatusError> {
    let resource = &call.resource;
    let group_resource = resource.group_resource();
    let name = &call.target.name;
    if let Some(writer) = writer {
        managed_fields::after_update(call.model(), Some(old), &mut new, writer);
    }
    subresources::restrict(call, &mut new, old);
    let sent_version = meta(&new, "resourceVersion").to_owned();
    match sent_version.as_str() {
        "" | "0" if resource.unconditional_update => {}
        "" | "0" => {
            return Err(StatusError::invalid(
                // kube-apiserver names the resource here, the kind elsewhere.
                &GroupKind::new(&resource.group, &resource.plural),
                name,
                vec![Cause::invalid(
                    "metadata.resourceVersion",
                    &0.into(),
                    "must be specified for an update",
                )],
            ));
        }
        sent if sent.parse() != Ok(current.revision) => {
            return Err(StatusError::stale(&group_resource, name));
        }
        _ => {}
    }
    keep_metadata(&mut new, old);
    if call.target.subresource == "ephemeralcontainers" {
        count_generation(call, &mut new, old);
        call.model().validate_ephemeral_containers(&new, old)?;
    } else if call.target.subresource == "finalize" {
        call.model().validate_status_update(&new, old)?;
    } else if call.target.subresource == "approval" || call.is_status() && certificates::is_request(resource)
    {
        call.model().prepare_decision(&mut new, old);
        call.model().validate_decision(&new, old)?;
    } else if call.is_status() {
        call.model().prepare_status_update(&mut new, old);
        call.model().validate_status_update(&new, old)?;
    } else {
        call.model().prepare_update(&mut new, old);
        if resource.is("", "services") {
            services::keep_address(&mut new, old);
        }
        count_generation(call, &mut new, old);
        call.model().validate_update(&new, old)?;
        check_rights_granted(call, &new)?;
    }
    let key = call.key();
    let being_deleted = !meta(&new, "deletionTimestamp").is_empty();
    let grace = new.pointer("/metadata/deletionGracePeriodSeconds").and_then(Value::as_i64).unwrap_or(0);
    let waits = !finalizers(&new).is_empty() || namespaces::is_held(resource, &new);
    if being_deleted && grace == 0 && !waits {
        let removed = transaction.remove(resource, &key, resource.stored(new));
        definitions::settle(transaction, served, resource)?;
        namespaces::settle(transaction, served, &current.namespace)?;
        return Ok(removed);
    }
    if unchanged(&new, old) {
        return transaction.get(&resource.storage, &key).ok_or_else(|| call.not_found());
    }
    let stored = transaction.put(resource, &key, resource.stored(new));
    Ok(stored)
}

fn count_generation(call: &Call, new: &mut Value, old: &Value) {
    if call.model().changes_generation(new, old) {
        let generation = old.pointer("/metadata/generation").and_then(Value::as_i64).unwrap_or(0);
        meta_mut(new).insert("generation".into(), (generation + 1).into());
    }
}

/// Keeps the metadata that only the server writes.
fn keep_metadata(new: &mut Value, old: &Value) {
    let metadata = meta_mut(new);
    metadata.shift_remove("selfLink");
    // Validation refuses a changed uid.
    let sent_uid = metadata.get("uid").and_then(Value::as_str).is_some_and(|uid| !uid.is_empty());
    if !sent_uid && let Some(uid) = old.pointer("/metadata/uid") {
        metadata.insert("uid".into(), uid.clone());
    }
    for field in [
        "creationTimestamp",
        "generation",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "resourceVersion",
    ] {
        match old.get("metadata").and_then(|metadata| metadata.get(field)) {
            Some(value) => metadata.insert(field.into(), value.clone()),
            None => metadata.shift_remove(field),
        };
    }
}

/// Returns whether a write changes nothing but the times of managed fields; such a write creates no new
/// version.
fn unchanged(new: &Value, old: &Value) -> bool {
    let without_times = |object: &Value| {
        let mut object = object.clone();
        if let Some(entries) = object.pointer_mut("/metadata/managedFields").and_then(Value::as_array_mut) {
            for entry in entries.iter_mut().filter_map(Value::as_object_mut) {
                entry.shift_remove("time");
            }
        }
        object
    };
    without_times(new) == without_times(old)
}

/// Refuses a Role or Binding that grants more rights than the user has.
fn check_rights_granted(call: &Call, object: &Value) -> Result<(), StatusError> {
    if call.resource.group != "rbac.authorization.k8s.io" {
        return Ok(());
    }
    call.authorizer.check_escalation(&call.user, &call.resource.plural, &call.target.namespace, object)
}

/// Returns the writer for `managed_fields`.
pub(crate) fn writer<'a>(call: &'a Call, manager: &'a str, now: &'a str) -> Writer<'a> {
    Writer { manager, subresource: &call.target.subresource, now }
}

/// Returns whether this resource is CustomResourceDefinitions.
pub(crate) fn is_definition(resource: &Resource) -> bool {
    resource.is("apiextensions.k8s.io", "customresourcedefinitions")
}

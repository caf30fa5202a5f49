//! `scale`: the number of replicas in one form for all workloads, including custom resources.

use super::body_of_kind;
use crate::call::Call;
use crate::managed_fields;
use crate::model::Model;
use crate::negotiation;
use crate::patch::{self, PatchKind};
use crate::resource::Resource;
use crate::respond::{self, Body};
use crate::selector::label_text;
use crate::status::{Cause, GroupKind, StatusError};
use crate::store::Stored;
use crate::write::{self, meta, meta_mut};
use http::Response;
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// The number that a patch starts from if a custom resource has none; the patch must replace it.
const NEVER_SET: i64 = i32::MIN as i64;

/// The JSON pointers to the fields that a scale shows.
#[derive(Clone, Debug)]
pub(crate) struct ScalePaths {
    pub(crate) spec_replicas: String,
    pub(crate) status_replicas: String,
    pub(crate) selector: SelectorAt,
}

/// The place of the Pods' selector.
#[derive(Clone, Debug)]
pub(crate) enum SelectorAt {
    /// In the spec, as in workloads.
    Typed,
    /// As text, at a JSON pointer.
    Text(String),
    Nowhere,
}

/// Returns whether a resource has a scale.
pub(super) fn is_scaled(resource: &Resource) -> bool {
    match &resource.custom {
        Some(custom) => custom.scale.is_some(),
        None => matches!(
            (resource.group.as_str(), resource.plural.as_str()),
            ("apps", "deployments" | "replicasets" | "statefulsets") | ("", "replicationcontrollers")
        ),
    }
}

pub(super) fn get(call: &Call) -> Result<Response<Body>, StatusError> {
    let stored =
        call.cluster.store.get(&call.resource.storage, &call.key()).ok_or_else(|| call.not_found())?;
    let object = call.resource.served(&stored)?;
    let paths = paths(&call.resource);
    if call.resource.custom.is_some() && object.pointer(&paths.spec_replicas).is_none() {
        let path = paths.spec_replicas.replace('/', ".");
        return Err(StatusError::internal(format!("the spec replicas field {path:?} does not exist")));
    }
    Ok(answer(call, &scale(&object, &paths)))
}

pub(super) fn update(call: &Call) -> Result<Response<Body>, StatusError> {
    let (_, scale) = body_of_kind(call, "autoscaling", "Scale")?;
    let name = meta(&scale, "name");
    if name != call.target.name {
        return Err(StatusError::bad_request(format!(
            "the name of the object ({name}) does not match the name on the URL ({})",
            call.target.name
        )));
    }
    change(call, |_| Ok(scale.clone()))
}

pub(super) fn patch(call: &Call) -> Result<Response<Body>, StatusError> {
    let validation = call.field_validation()?;
    let content_type = negotiation::content_type(&call.headers);
    let kind = PatchKind::from_content_type(content_type, call.resource.custom.is_some())?;
    if matches!(kind, PatchKind::Apply) {
        return apply(call);
    }
    let model = model()?;
    change(call, |old| {
        let patched = patch::patched(kind, &model, old, &call.body)?;
        Ok(patch::decoded(&model, patched, validation)?.object)
    })
}

/// Applies the number of replicas; the manager owns the field of the object itself.
fn apply(call: &Call) -> Result<Response<Body>, StatusError> {
    let dry_run = call.query.dry_run()?;
    let invalid =
        |cause| StatusError::invalid(&GroupKind::new("meta.k8s.io", "PatchOptions"), "", vec![cause]);
    let manager = call.query.get("fieldManager").unwrap_or_default();
    if manager.is_empty() {
        return Err(invalid(Cause::required("fieldManager", "is required for apply patch")));
    }
    let applied: Value = serde_norway::from_slice(&call.body)
        .map_err(|error| StatusError::bad_request(format!("error decoding YAML: {error}")))?;
    let text = |field: &str| applied.get(field).and_then(Value::as_str).unwrap_or_default();
    if text("kind") != "Scale" || text("apiVersion") != "autoscaling/v1" {
        let (group, version) = text("apiVersion").rsplit_once('/').unwrap_or(("", text("apiVersion")));
        let message = format!("invalid object type: {group}/{version}, Kind={}", text("kind"));
        return Err(StatusError::bad_request(message));
    }
    let force = call.query.flag("force");
    let (paths, time) = (paths(&call.resource), call.now());
    let stored = call.cluster.write(dry_run, |transaction, served| {
        let current = transaction.get(&call.resource.storage, &call.key()).ok_or_else(|| call.not_found())?;
        let old = call.resource.served(&current)?;
        let mut wanted = json!({
            "kind": call.resource.kind, "apiVersion": call.resource.api_version(),
            "metadata": {"name": call.target.name, "namespace": call.target.namespace},
        });
        if let Some(replicas) = applied.pointer("/spec/replicas") {
            check(call, &applied, replicas.as_i64().unwrap_or_default(), &paths, &current)?;
            set(&mut wanted, &paths.spec_replicas, replicas.clone());
        }
        let writer = write::writer(call, manager, &time);
        let mut new = managed_fields::apply(call.model(), Some(&old), &wanted, force, writer)?;
        let version = match meta(&applied, "resourceVersion") {
            "" => current.revision.to_string(),
            version => version.to_owned(),
        };
        meta_mut(&mut new).insert("resourceVersion".into(), version.into());
        write::update(call, transaction, served, &current, &old, new, None)
    })?;
    Ok(answer(call, &scale(&call.resource.served(&stored)?, &paths)))
}

fn change(
    call: &Call,
    wanted: impl Fn(&Value) -> Result<Value, StatusError>,
) -> Result<Response<Body>, StatusError> {
    let dry_run = call.query.dry_run()?;
    let (manager, time) = (call.manager(), call.now());
    let paths = paths(&call.resource);
    let stored: Arc<Stored> = call.cluster.write(dry_run, |transaction, served| {
        let current = transaction.get(&call.resource.storage, &call.key()).ok_or_else(|| call.not_found())?;
        let old = call.resource.served(&current)?;
        let mut shown = scale(&old, &paths);
        if call.resource.custom.is_some() && old.pointer(&paths.spec_replicas).is_none() {
            shown["spec"]["replicas"] = NEVER_SET.into();
        }
        let wanted = wanted(&shown)?;
        let replicas = wanted.pointer("/spec/replicas").and_then(Value::as_i64).unwrap_or_default();
        check(call, &wanted, replicas, &paths, &current)?;
        let mut new = old.clone();
        set(&mut new, &paths.spec_replicas, replicas.into());
        let version = match meta(&wanted, "resourceVersion") {
            "" => current.revision.to_string(),
            version => version.to_owned(),
        };
        meta_mut(&mut new).insert("resourceVersion".into(), version.into());
        let writer = write::writer(call, &manager, &time);
        write::update(call, transaction, served, &current, &old, new, Some(writer))
    })?;
    Ok(answer(call, &scale(&call.resource.served(&stored)?, &paths)))
}

fn check(
    call: &Call,
    wanted: &Value,
    replicas: i64,
    paths: &ScalePaths,
    current: &Stored,
) -> Result<(), StatusError> {
    let name = &call.target.name;
    if call.resource.custom.is_some() && replicas == NEVER_SET {
        let path = paths.spec_replicas.replace('/', ".");
        return Err(StatusError::bad_request(format!("the spec replicas field {path:?} cannot be empty")));
    }
    if replicas < 0 {
        let kind = GroupKind::new("autoscaling", "Scale");
        let cause = Cause::invalid("spec.replicas", &replicas.into(), "must be greater than or equal to 0");
        return Err(StatusError::invalid(&kind, name, vec![cause]));
    }
    write::check_uid(call, wanted, current)
}

/// As in kube-apiserver, ownership through `scale` has no time.
pub(super) fn restrict(object: &mut Value) {
    let owners = object.pointer_mut("/metadata/managedFields").and_then(Value::as_array_mut);
    for owner in owners.into_iter().flatten().filter(|owner| owner["subresource"] == "scale") {
        if let Some(owner) = owner.as_object_mut() {
            owner.shift_remove("time");
        }
    }
}

fn paths(resource: &Resource) -> ScalePaths {
    resource.custom.as_ref().and_then(|custom| custom.scale.clone()).unwrap_or_else(|| ScalePaths {
        spec_replicas: "/spec/replicas".into(),
        status_replicas: "/status/replicas".into(),
        selector: SelectorAt::Typed,
    })
}

/// Returns the scale of an object.
fn scale(object: &Value, paths: &ScalePaths) -> Value {
    let mut metadata = Map::new();
    for field in ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"] {
        if let Some(value) = object["metadata"].get(field) {
            metadata.insert(field.into(), value.clone());
        }
    }
    let number = |pointer: &str| object.pointer(pointer).and_then(Value::as_i64).unwrap_or_default();
    let selector = match &paths.selector {
        SelectorAt::Typed => label_text(&object["spec"]["selector"]),
        SelectorAt::Text(pointer) => {
            object.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned()
        }
        SelectorAt::Nowhere => String::new(),
    };
    let mut spec = json!({});
    if number(&paths.spec_replicas) != 0 {
        spec["replicas"] = number(&paths.spec_replicas).into();
    }
    let mut status = json!({"replicas": number(&paths.status_replicas)});
    if !selector.is_empty() {
        status["selector"] = selector.into();
    }
    json!({"kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": metadata, "spec": spec, "status": status})
}

fn set(object: &mut Value, pointer: &str, value: Value) {
    let mut at = object;
    for step in pointer.split('/').skip(1) {
        if !at.is_object() {
            *at = json!({});
        }
        at = &mut at[step];
    }
    *at = value;
}

fn model() -> Result<Model, StatusError> {
    Model::builtin("autoscaling", "v1", "Scale")
        .ok_or_else(|| StatusError::internal("the type Scale is not known"))
}

fn answer(call: &Call, scale: &Value) -> Response<Body> {
    let model = model().ok();
    respond::document(200, call.accepted.notation, scale, model.as_ref().map(Model::root))
}

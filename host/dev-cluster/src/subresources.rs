//! Subresources: which ones a resource has, and their handlers.
//!
//! The handlers of the object itself write `status`. The subresources of a kubelet (`exec`, `log`,
//! `portforward`, …) are refused by name.

mod binding;
mod eviction;
mod scale;

pub(crate) use scale::{ScalePaths, SelectorAt};

use crate::call::Call;
use crate::certificates;
use crate::handlers;
use crate::model::Model;
use crate::negotiation;
use crate::resource::Resource;
use crate::respond::{self, Body};
use crate::service_account_tokens;
use crate::status::StatusError;
use crate::write::meta_mut;
use http::Response;
use serde_json::{Value, json};

/// A subresource as in discovery.
pub(crate) struct Subresource {
    pub(crate) name: &'static str,
    pub(crate) kind: String,
    /// The group and version of its kind, if they differ from the resource's.
    pub(crate) of: Option<(&'static str, &'static str)>,
    pub(crate) verbs: &'static [&'static str],
}

const CHANGED: &[&str] = &["get", "patch", "update"];
const CREATED: &[&str] = &["create"];
const AUTOSCALING: (&str, &str) = ("autoscaling", "v1");

/// Returns the subresources of a resource, in the order of discovery.
pub(crate) fn of(resource: &Resource) -> Vec<Subresource> {
    let own = |name, kind: &str, verbs| Subresource { name, kind: kind.into(), of: None, verbs };
    let foreign = |name, kind: &str, of, verbs| Subresource { of: Some(of), ..own(name, kind, verbs) };
    let mut found = Vec::new();
    match (resource.group.as_str(), resource.plural.as_str()) {
        ("", "namespaces") => found.push(own("finalize", &resource.kind, &["update"])),
        ("", "pods") => {
            found.push(own("binding", "Binding", CREATED));
            found.push(own("ephemeralcontainers", &resource.kind, CHANGED));
            found.push(foreign("eviction", "Eviction", ("policy", "v1"), CREATED));
        }
        ("certificates.k8s.io", "certificatesigningrequests") => {
            found.push(own("approval", &resource.kind, CHANGED));
        }
        ("", "serviceaccounts") => {
            found.push(foreign("token", "TokenRequest", ("authentication.k8s.io", "v1"), CREATED));
        }
        _ => {}
    }
    if scale::is_scaled(resource) {
        found.push(foreign("scale", "Scale", AUTOSCALING, CHANGED));
    }
    if resource.has_status {
        found.push(own("status", &resource.kind, CHANGED));
    }
    if resource.custom.is_some() {
        // kube-apiserver lists it first for custom resources.
        found.reverse();
    }
    found
}

/// Answers a request for a subresource that [`of`] returns, except `status`.
pub(crate) async fn serve(call: &Call, verb: &str) -> Result<Response<Body>, StatusError> {
    match (call.target.subresource.as_str(), verb) {
        ("token", "create") => service_account_tokens::token(call),
        ("binding", "create") => binding::create(call),
        ("eviction", "create") => eviction::create(call),
        ("scale", "get") => scale::get(call),
        ("scale", "update") => scale::update(call),
        ("scale", "patch") => scale::patch(call),
        (_, "get") => handlers::get(call).await,
        (_, "update") => handlers::update(call),
        (_, "patch") => handlers::patch(call),
        _ => Err(StatusError::method_not_allowed()),
    }
}

/// Resets the fields that this subresource cannot change.
pub(crate) fn restrict(call: &Call, new: &mut Value, old: &Value) {
    if call.target.subresource == "scale" {
        return scale::restrict(new);
    }
    let pointer = match call.target.subresource.as_str() {
        "ephemeralcontainers" => ("spec", "ephemeralContainers"),
        "finalize" => ("spec", "finalizers"),
        "approval" => return certificates::decide(new, old, &call.now()),
        "status" if certificates::is_request(&call.resource) => return certificates::date(new, &call.now()),
        _ => return,
    };
    let (parent, field) = pointer;
    let wanted = new.get(parent).and_then(|parent| parent.get(field)).cloned();
    let metadata = new.get("metadata").cloned().unwrap_or_default();
    *new = old.clone();
    for name in ["managedFields", "resourceVersion"] {
        match metadata.get(name) {
            Some(value) => drop(meta_mut(new).insert(name.into(), value.clone())),
            None => drop(meta_mut(new).shift_remove(name)),
        }
    }
    if !new[parent].is_object() {
        new[parent] = json!({});
    }
    if let Some(fields) = new[parent].as_object_mut() {
        match wanted {
            Some(wanted) => drop(fields.insert(field.into(), wanted)),
            None => drop(fields.shift_remove(field)),
        }
    }
}

/// Decodes a body whose kind is not the resource's.
fn body_of_kind(call: &Call, group: &str, kind: &str) -> Result<(Model, Value), StatusError> {
    let model = Model::builtin(group, "v1", kind)
        .ok_or_else(|| StatusError::internal(format!("the type {kind} is not known")))?;
    let body = negotiation::decode(&call.headers, &call.body, kind, Some(model.root()))?;
    let object = model.decode(body, call.field_validation()?)?.object;
    Ok((model, object))
}

/// The response of a successful request that returns no object.
fn done(call: &Call) -> Response<Body> {
    let status =
        json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201});
    respond::status(201, call.accepted.notation, &status)
}

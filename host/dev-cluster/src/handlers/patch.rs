//! PATCH of an object or of its status: JSON patch, merge patch, strategic merge patch, server-side apply.

use crate::authorizer::Attributes;
use crate::call::Call;
use crate::definitions;
use crate::form;
use crate::managed_fields;
use crate::model::FieldValidation;
use crate::negotiation;
use crate::patch::{self, PatchKind};
use crate::respond::Body;
use crate::status::{Cause, GroupKind, StatusError};
use crate::store::Stored;
use crate::table::Include;
use crate::write::{self, meta, meta_mut};
use http::Response;
use serde_json::Value;
use std::sync::Arc;

pub(crate) fn patch(call: &Call) -> Result<Response<Body>, StatusError> {
    let dry_run = call.query.dry_run()?;
    let content_type = negotiation::content_type(&call.headers);
    let kind = PatchKind::from_content_type(content_type, call.resource.custom.is_some())?;
    let (stored, created, warnings) = match kind {
        PatchKind::Apply => apply(call, dry_run)?,
        kind => merge(call, kind, dry_run)?,
    };
    definitions::after_write(call, &stored, dry_run)?;
    let code = if created { 201 } else { 200 };
    let mut response = form::object(code, &call.resource, call.accepted, &stored, Include::Metadata)?;
    form::add_warnings(&mut response, &warnings);
    Ok(response)
}

type Patched = (Arc<Stored>, bool, Vec<String>);

fn merge(call: &Call, kind: PatchKind, dry_run: bool) -> Result<Patched, StatusError> {
    let validation = call.field_validation()?;
    if call.query.get("force").is_some() {
        let why = "may not be specified for non-apply patch";
        return Err(invalid_options(Cause::forbidden("force", why)));
    }
    let (manager, now) = (call.manager(), call.now());
    call.cluster.write(dry_run, |transaction, served| {
        let current = transaction.get(&call.resource.storage, &call.key()).ok_or_else(|| call.not_found())?;
        let old = call.resource.served(&current)?;
        let mut patched = patch::patched(kind, call.model(), &old, &call.body)?;
        write::check_identity(call, &mut patched)?;
        check_name(call, &patched)?;
        let mut decoded = patch::decoded(call.model(), patched, validation)?;
        if meta(&decoded.object, "resourceVersion").is_empty() {
            let version = current.revision.to_string();
            meta_mut(&mut decoded.object).insert("resourceVersion".into(), version.into());
        }
        let writer = Some(write::writer(call, &manager, &now));
        let stored = write::update(call, transaction, served, &current, &old, decoded.object, writer)?;
        Ok((stored, false, decoded.warnings))
    })
}

fn apply(call: &Call, dry_run: bool) -> Result<Patched, StatusError> {
    let manager = call.query.get("fieldManager").unwrap_or_default();
    if manager.is_empty() {
        return Err(invalid_options(Cause::required("fieldManager", "is required for apply patch")));
    }
    let force = call.query.flag("force");
    // Unknown fields are always refused: an apply needs the type of each field.
    call.field_validation()?;
    let applied: Value = serde_norway::from_slice(&call.body)
        .map_err(|error| StatusError::bad_request(format!("error decoding YAML: {error}")))?;
    check_applied_kind(call, &applied)?;
    let mut placed = applied.clone();
    write::check_identity(call, &mut placed)?;
    if !meta(&applied, "name").is_empty() {
        check_name(call, &applied)?;
    }
    let now = call.now();
    call.cluster.write(dry_run, |transaction, served| {
        let writer = write::writer(call, manager, &now);
        let current = transaction.get(&call.resource.storage, &call.key());
        let old = current.as_ref().map(|current| call.resource.served(current)).transpose()?;
        let mut object = managed_fields::apply(call.model(), old.as_ref(), &applied, force, writer)?;
        // The merged object is written like a Go struct, with its defaults.
        object = call.model().decode(object, FieldValidation::Ignore)?.object;
        let metadata = meta_mut(&mut object);
        metadata.insert("name".into(), call.target.name.as_str().into());
        if call.resource.namespaced {
            metadata.insert("namespace".into(), call.target.namespace.as_str().into());
        }
        let (Some(current), Some(old)) = (current, old) else {
            if call.is_status() {
                return Err(call.not_found());
            }
            // The right to patch is not enough for an apply that creates.
            let creates = Attributes {
                verb: "create",
                group: &call.resource.group,
                resource: &call.resource.plural,
                namespace: &call.target.namespace,
                name: &call.target.name,
                ..Attributes::default()
            };
            call.authorizer.require(&call.user, &creates)?;
            let stored = write::create(call, transaction, object, None)?;
            return Ok((stored, true, Vec::new()));
        };
        write::check_uid(call, &applied, &current)?;
        let version = meta(&applied, "resourceVersion");
        let version = if version.is_empty() { current.revision.to_string() } else { version.to_owned() };
        meta_mut(&mut object).insert("resourceVersion".into(), version.into());
        let stored = write::update(call, transaction, served, &current, &old, object, None)?;
        Ok((stored, false, Vec::new()))
    })
}

fn invalid_options(cause: Cause) -> StatusError {
    StatusError::invalid(&GroupKind::new("meta.k8s.io", "PatchOptions"), "", vec![cause])
}

/// Checks that an applied object names its kind and apiVersion, and that they match the path.
fn check_applied_kind(call: &Call, applied: &Value) -> Result<(), StatusError> {
    let text = |field: &str| applied.get(field).and_then(Value::as_str).unwrap_or_default();
    if text("kind") == call.resource.kind && text("apiVersion") == call.resource.api_version() {
        return Ok(());
    }
    let (group, version) = text("apiVersion").rsplit_once('/').unwrap_or(("", text("apiVersion")));
    Err(StatusError::bad_request(format!("invalid object type: {group}/{version}, Kind={}", text("kind"))))
}

fn check_name(call: &Call, object: &Value) -> Result<(), StatusError> {
    let name = meta(object, "name");
    if name != call.target.name {
        return Err(StatusError::bad_request(format!(
            "the name of the object ({name}) does not match the name on the URL ({})",
            call.target.name
        )));
    }
    Ok(())
}

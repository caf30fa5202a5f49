//! DELETE of one object, or of all selected objects.

use crate::call::Call;
use crate::deletion::{self, Options, Outcome};
use crate::form::{self, Form};
use crate::negotiation::{self, Notation};
use crate::protobuf;
use crate::respond::{self, Body};
use crate::schema::Node;
use crate::selector::Selection;
use crate::status::StatusError;
use crate::table::Include;
use http::Response;
use serde_json::json;

const ORPHANED_PODS: &str = "child pods are preserved by default when jobs are deleted; set \
                             propagationPolicy=Background to remove them or set propagationPolicy=Orphan to suppress this \
                             warning";

pub(crate) fn delete(call: &Call) -> Result<Response<Body>, StatusError> {
    let (options, dry_run) = options(call)?;
    let outcome = call.cluster.write(dry_run, |transaction, served| {
        let object = transaction.get(&call.resource.storage, &call.key()).ok_or_else(|| call.not_found())?;
        options.check(&call.resource, &object)?;
        deletion::remove(transaction, served, &call.resource, &object, &options)
    })?;
    let mut response = answer(call, outcome)?;
    if call.resource.is("batch", "jobs") && !options.has_propagation_policy() {
        form::add_warnings(&mut response, &[ORPHANED_PODS.to_owned()]);
    }
    Ok(response)
}

fn answer(call: &Call, outcome: Outcome) -> Result<Response<Body>, StatusError> {
    let (object, removed) = match outcome {
        Outcome::Removed(object) => (object, true),
        Outcome::Waiting(object) => (object, false),
    };
    if !removed || call.resource.returns_deleted {
        return form::object(200, &call.resource, call.accepted, &object, Include::Metadata);
    }
    let mut details = json!({"name": object.name});
    if !call.resource.group.is_empty() {
        details["group"] = call.resource.group.as_str().into();
    }
    details["kind"] = call.resource.plural.as_str().into();
    details["uid"] = object.uid.as_str().into();
    let status = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details,
    });
    Ok(respond::status(200, call.accepted.notation, &status))
}

pub(crate) fn delete_collection(call: &Call) -> Result<Response<Body>, StatusError> {
    let (options, dry_run) = options(call)?;
    let selection: Selection = call.selection()?;
    let prefix = match call.target.namespace.as_str() {
        "" => String::new(),
        namespace => format!("{namespace}/"),
    };
    let (objects, revision) = call.cluster.write(dry_run, |transaction, served| {
        let mut objects = transaction.objects(&call.resource.storage, &prefix);
        objects.retain(|object| selection.matches(object));
        let revision = transaction.revision();
        for object in &objects {
            options.check(&call.resource, object)?;
            deletion::remove(transaction, served, &call.resource, object, &options)?;
        }
        Ok((objects, revision))
    })?;
    let form = Form { resource: &call.resource, shape: call.accepted.shape };
    if call.accepted.notation == Notation::Protobuf {
        let metadata = json!({"resourceVersion": revision.to_string()});
        let list = form.list(&metadata, &objects)?;
        return Ok(respond::with_type(200, protobuf::MEDIA_TYPE, respond::full(list)));
    }
    let mut json = format!(
        "{{\"kind\":\"{}\",\"apiVersion\":\"{}\",\"metadata\":{{\"resourceVersion\":\"{revision}\"}},\"items\":[",
        call.resource.list_kind,
        call.resource.api_version(),
    )
    .into_bytes();
    for (at, object) in objects.iter().enumerate() {
        if at > 0 {
            json.push(b',');
        }
        form.write(&mut json, object, true)?;
    }
    json.extend_from_slice(b"]}");
    Ok(respond::with_type(200, "application/json", respond::full(json)))
}

/// Decodes the options from the body, or from the query if there is no body.
fn options(call: &Call) -> Result<(Options, bool), StatusError> {
    let mut options = Options::default();
    if !call.body.is_empty() {
        let of = Node::message("meta.v1.DeleteOptions");
        let body = negotiation::decode(&call.headers, &call.body, "DeleteOptions", of.as_ref())?;
        options =
            serde_json::from_value(body).map_err(|error| StatusError::bad_request(error.to_string()))?;
    }
    if let Some(seconds) = call.query.get("gracePeriodSeconds") {
        let seconds = seconds.parse().map_err(|_| {
            StatusError::bad_request(format!("strconv.ParseInt: parsing {seconds:?}: invalid syntax"))
        })?;
        options.grace_period_seconds = Some(seconds);
    }
    if let Some(policy) = call.query.get("propagationPolicy") {
        options.propagation_policy = Some(policy.to_owned());
    }
    if call.query.get("orphanDependents").is_some() {
        options.orphan_dependents = Some(call.query.flag("orphanDependents"));
    }
    options.check_policy()?;
    let dry_run = call.query.dry_run()? || options.dry_run.as_ref().is_some_and(|all| !all.is_empty());
    Ok((options, dry_run))
}

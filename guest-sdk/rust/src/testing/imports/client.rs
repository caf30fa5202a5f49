//! Requests to the API server.

use oarlock_sdk_bindings::oarlock::plugin::client::Written;

use super::super::cluster::part;
use super::super::recorded::{Write, resource};
use super::{
    Error, GroupVersionResource, Page, PageRequest, Projection, State, Value, page, parse, text, with,
};
use crate::client::{PatchKind, Preconditions, Propagation};
use crate::testing::selector::{matches_fields, matches_labels};
use crate::{Namespaces, ObjectKey, key};

/// Fails if the test wants it, or if the plugin does not declare the request: it would lack the right.
fn check(
    state: &mut State,
    call: &str,
    verbs: &[&str],
    target: &GroupVersionResource,
    subresource: &str,
) -> Result<(), Error> {
    state.fail(call)?;
    let Some(description) = &state.description else { return Ok(()) };
    let is_read = matches!(call, "get" | "list");
    let mut requests = description.requests.iter();
    let is_declared = requests.any(|request| {
        request.target == *target
            && request.subresource == subresource
            && verbs.iter().any(|verb| request.verbs.iter().any(|declared| declared == verb))
    });
    let is_watched = description.subscriptions.iter().any(|it| it.target == *target)
        || description.reads.iter().any(|it| it.target == *target);
    if is_declared || is_read && is_watched && subresource.is_empty() {
        return Ok(());
    }
    let verbs = verbs.join(" or ");
    Err(Error::Forbidden(format!(
        "describe declares no request with the verb {verbs} for {} {subresource:?}",
        resource(target)
    )))
}

fn record(
    verb: &'static str,
    target: &GroupVersionResource,
    key: ObjectKey,
    subresource: &str,
    body: Value,
) -> Write {
    Write { verb, target: target.clone(), key, subresource: subresource.to_owned(), body }
}

pub(crate) fn get(
    target: &GroupVersionResource,
    key: &ObjectKey,
    subresource: &str,
) -> Result<String, Error> {
    with(|state| {
        check(state, "get", &["get"], target, subresource)?;
        let object = state.cluster.get(target, key)?;
        if subresource.is_empty() {
            return text(Ok(object));
        }
        part(subresource, object).map(|part| part.to_string())
    })
}

pub(crate) fn list(
    target: &GroupVersionResource,
    namespaces: &Namespaces,
    labels: &str,
    fields: &str,
    projection: &Projection,
    request: &PageRequest,
) -> Result<Page, Error> {
    with(|state| {
        check(state, "list", &["list"], target, "")?;
        let objects = state.cluster.list(target, namespaces);
        let matching =
            objects.filter(|object| matches_labels(labels, object) && matches_fields(fields, object));
        Ok(page(matching, projection, request, state.page_size))
    })
}

pub(crate) fn create(target: &GroupVersionResource, namespace: &str, json: &str) -> Result<Written, Error> {
    with(|state| {
        let body = parse(json)?;
        let name = body["metadata"]["name"].as_str().unwrap_or_default();
        state.writes.push(record("create", target, key(namespace, name), "", body.clone()));
        check(state, "create", &["create"], target, "")?;
        state.cluster.create(target, namespace, body)
    })
}

pub(crate) fn apply(
    target: &GroupVersionResource,
    key: &ObjectKey,
    subresource: &str,
    json: &str,
    _force: bool,
    preconditions: &Preconditions,
) -> Result<Written, Error> {
    with(|state| {
        let body = parse(json)?;
        state.writes.push(record("apply", target, key.clone(), subresource, body.clone()));
        check(state, "apply", &["patch"], target, subresource)?;
        state.cluster.apply(target, key, subresource, &body, preconditions)
    })
}

pub(crate) fn patch(
    target: &GroupVersionResource,
    key: &ObjectKey,
    subresource: &str,
    kind: PatchKind,
    body: &str,
    preconditions: &Preconditions,
) -> Result<Written, Error> {
    with(|state| {
        let body = parse(body)?;
        state.writes.push(record("patch", target, key.clone(), subresource, body.clone()));
        check(state, "patch", &["patch"], target, subresource)?;
        state.cluster.patch(target, key, subresource, kind, &body, preconditions)
    })
}

pub(crate) fn replace(
    target: &GroupVersionResource,
    key: &ObjectKey,
    subresource: &str,
    json: &str,
) -> Result<Written, Error> {
    with(|state| {
        let body = parse(json)?;
        state.writes.push(record("replace", target, key.clone(), subresource, body.clone()));
        check(state, "replace", &["update"], target, subresource)?;
        state.cluster.replace(target, key, subresource, &body)
    })
}

pub(crate) fn delete(
    target: &GroupVersionResource,
    key: &ObjectKey,
    _: Propagation,
    _: Option<u32>,
    preconditions: &Preconditions,
) -> Result<(), Error> {
    with(|state| {
        state.writes.push(record("delete", target, key.clone(), "", Value::Null));
        check(state, "delete", &["delete"], target, "")?;
        state.cluster.delete(target, key, preconditions)
    })
}

//! The path of one request: authentication, target, faults, authorization, handler.

use crate::authorizer::{Attributes, Authorizer, impersonated};
use crate::call::Call;
use crate::catalog::Served;
use crate::cluster::Cluster;
use crate::discovery;
use crate::faults::{Action, Subject};
use crate::faulty_body;
use crate::handlers;
use crate::left_out;
use crate::negotiation::{Accepted, Notation};
use crate::openapi;
use crate::query::Query;
use crate::request_info::{RequestInfo, Target};
use crate::respond::{self, Body};
use crate::reviews;
use crate::selector::exact_name;
use crate::status::StatusError;
use crate::subresources::{self, Subresource};
use crate::user::UserInfo;
use bytes::Bytes;
use http::header::USER_AGENT;
use http::request::Parts;
use http::{HeaderMap, Method, Request, Response};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use serde_json::json;
use std::sync::Arc;

type BoxError = Box<dyn std::error::Error + Send + Sync>;

const NOT_FOUND: &str = "404 page not found\n";
/// The limit of a request's body.
const MAX_BODY: usize = 3 * 1024 * 1024;
/// The version that this server reports; clients derive capabilities from it.
pub(crate) const VERSION: &str = "v1.36.2";

/// Answers a request. Every error becomes a Status.
pub(crate) async fn serve(
    cluster: Arc<Cluster>,
    address: Arc<str>,
    request: Request<impl http_body::Body<Data = Bytes, Error: Into<BoxError>>>,
) -> Response<Body> {
    let (parts, body) = request.into_parts();
    let query = Query::parse(parts.uri.query().unwrap_or_default());
    let info = RequestInfo::parse(&parts.method, parts.uri.path(), query.flag("watch"));
    let is_head = parts.method == Method::HEAD;
    let faults = cluster.faults.take(&subject(&info, &parts.headers));
    // An error is encoded as the client asked, or in JSON if the server does not have that encoding.
    let notation = Accepted::negotiate(&parts.headers, true);
    let notation = notation.map_or(Notation::Json, |accepted| accepted.notation);
    let response = match answer(cluster, &address, parts, query, info.clone(), body, &faults).await {
        Ok(response) => response,
        Err(error) => respond::error(&error, notation),
    };
    tracing::debug!(verb = info.verb, path = info.path, status = response.status().as_u16(), "answered");
    if is_head {
        return response.map(|_| respond::full(""));
    }
    faulty_body::apply(response, &faults)
}

async fn answer(
    cluster: Arc<Cluster>,
    address: &str,
    parts: Parts,
    query: Query,
    info: RequestInfo,
    body: impl http_body::Body<Data = Bytes, Error: Into<BoxError>>,
    faults: &[Action],
) -> Result<Response<Body>, StatusError> {
    refuse(faults, info.verb == "watch")?;
    let requester = cluster.authenticate(&parts.headers)?;
    let authorizer = cluster.authorizer();
    let user = acting_user(&authorizer, requester, &parts.headers, &info)?;
    let asked_name = query.get("fieldSelector").and_then(exact_name).unwrap_or_default();
    let mut asked = attributes(&info);
    if asked.name.is_empty() && matches!(asked.verb, "list" | "watch" | "deletecollection") {
        asked.name = &asked_name;
    }
    authorizer.require(&user, &asked)?;
    let Some(target) = info.target.clone() else {
        let served = cluster.catalog.served();
        let found =
            plain(&info.path).or_else(|| discovery::answer(&served, &info.path, &parts.headers, address));
        if found.is_none()
            && let Some(answer) = openapi::answer(&served, &info.path, &parts.headers)
        {
            return answer;
        }
        let mut path = info.path.trim_matches('/').split('/');
        return match (found, path.next()) {
            (Some(found), _) => Ok(found),
            (None, Some("api")) => unknown_resource(&served, ""),
            (None, Some("apis")) => unknown_resource(&served, path.next().unwrap_or("none")),
            (None, _) => Ok(respond::text(404, NOT_FOUND)),
        };
    };
    let body = read(body).await?;
    if reviews::is_review(&target) {
        if parts.method != Method::POST || !target.name.is_empty() {
            return Err(StatusError::method_not_allowed());
        }
        return reviews::answer(&cluster, &authorizer, &user, &target, &parts.headers, &query, &body);
    }
    let served = cluster.catalog.served();
    let mut target = target;
    if target.resource == "bindings"
        && target.group.is_empty()
        && target.name.is_empty()
        && info.verb == "create"
    {
        // The old form of a binding has the Pod's name in the body only.
        (target.resource, target.subresource) = ("pods".into(), "binding".into());
    }
    let Some(resource) = served.find(&target.group, &target.version, &target.resource).cloned() else {
        return unknown_resource(&served, &target.group);
    };
    if parts.method == Method::HEAD {
        return Err(StatusError::method_not_allowed());
    }
    let call = Call {
        accepted: Accepted::negotiate(&parts.headers, resource.custom.is_none())?,
        subject: subject(&info, &parts.headers),
        cluster,
        user,
        authorizer,
        headers: parts.headers,
        query,
        target,
        resource,
        body,
        faults: faults.to_vec(),
    };
    dispatch(&call, &info.verb).await
}

/// The answer to a request for an unknown resource: a Status for a built-in group, a Status that names the
/// alternative for a group of a real cluster, otherwise a bare 404.
fn unknown_resource(served: &Served, group: &str) -> Result<Response<Body>, StatusError> {
    if let Some(error) = left_out::group(group) {
        return Err(error);
    }
    if served.is_builtin_group(group) {
        Err(StatusError::resource_not_served())
    } else {
        Ok(respond::text(404, NOT_FOUND))
    }
}

async fn dispatch(call: &Call, verb: &str) -> Result<Response<Body>, StatusError> {
    let Target { namespace, name, subresource, rest, .. } = &call.target;
    if !rest.is_empty() {
        return Err(StatusError::resource_not_served());
    }
    let in_scope = call.resource.namespaced != namespace.is_empty() || call.resource.is("", "namespaces");
    let has_name = !name.is_empty();
    match (subresource.as_str(), verb) {
        ("", _) => {}
        (below, verb) if let Some(known) = find_subresource(call, below) => {
            if !known.verbs.contains(&verb) {
                return Err(StatusError::method_not_allowed());
            }
        }
        (_, _) if call.resource.custom.is_some() => return Err(call.not_found()),
        (other, verb) => return Err(left_out::subresource(&call.resource, other, verb)),
    }
    // Without a namespace only reading is possible.
    let may_be_wide = matches!(verb, "list" | "watch");
    if !in_scope && !may_be_wide
        || !call.resource.namespaced && !namespace.is_empty() && !call.resource.is("", "namespaces")
    {
        if call.resource.custom.is_some() && !namespace.is_empty() {
            return Ok(respond::text(404, "404 page not found\n"));
        }
        return Err(if namespace.is_empty() {
            StatusError::method_not_allowed()
        } else {
            StatusError::resource_not_served()
        });
    }
    if !matches!(subresource.as_str(), "" | "status") {
        return subresources::serve(call, verb).await;
    }
    match (verb, has_name) {
        ("get", true) => handlers::get(call).await,
        ("list", false) => handlers::list(call).await,
        ("watch", false) => handlers::watch(call).await,
        ("create", false) => handlers::create(call),
        ("update", true) => handlers::update(call),
        ("patch", true) => handlers::patch(call),
        ("delete", true) => handlers::delete(call),
        ("deletecollection", false) if call.resource.verbs.contains(&"deletecollection") => {
            handlers::delete_collection(call)
        }
        _ => Err(StatusError::method_not_allowed()),
    }
}

fn find_subresource(call: &Call, name: &str) -> Option<Subresource> {
    subresources::of(&call.resource).into_iter().find(|known| known.name == name)
}

/// Returns the error of a fault that replaces the response.
fn refuse(faults: &[Action], is_watch: bool) -> Result<(), StatusError> {
    for fault in faults {
        match fault {
            Action::RefuseLogin => return Err(StatusError::unauthorized()),
            Action::TooManyRequests { retry_after_seconds } => {
                let message = "Too many requests, please try again later.";
                return Err(StatusError::too_many_requests(message, *retry_after_seconds));
            }
            Action::InternalError => return Err(StatusError::internal("the fault `500` is active")),
            // A watch reports it as an event.
            Action::Expired if !is_watch => {
                return Err(StatusError::expired("The resourceVersion for the provided list is too old."));
            }
            _ => {}
        }
    }
    Ok(())
}

fn acting_user(
    authorizer: &Authorizer,
    requester: UserInfo,
    headers: &HeaderMap,
    info: &RequestInfo,
) -> Result<UserInfo, StatusError> {
    let impersonated = impersonated(authorizer, &requester, headers, &attributes(info))?;
    Ok(impersonated.unwrap_or(requester))
}

fn attributes(info: &RequestInfo) -> Attributes<'_> {
    match &info.target {
        None => Attributes { verb: &info.verb, path: Some(&info.path), ..Attributes::default() },
        Some(target) => Attributes {
            verb: &info.verb,
            group: &target.group,
            resource: &target.resource,
            subresource: &target.subresource,
            namespace: &target.namespace,
            name: &target.name,
            path: None,
        },
    }
}

fn subject(info: &RequestInfo, headers: &HeaderMap) -> Subject {
    let target = info.target.clone().unwrap_or_default();
    let agent = headers.get(USER_AGENT).and_then(|value| value.to_str().ok());
    Subject {
        verb: info.verb.clone(),
        group: target.group,
        resource: target.resource,
        namespace: target.namespace,
        user_agent: agent.unwrap_or_default().to_owned(),
    }
}

async fn read(body: impl http_body::Body<Data = Bytes, Error: Into<BoxError>>) -> Result<Bytes, StatusError> {
    match Limited::new(body, MAX_BODY).collect().await {
        Ok(collected) => Ok(collected.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => Err(StatusError::too_large(MAX_BODY)),
        Err(error) => Err(StatusError::bad_request(format!("unable to read the body: {error}"))),
    }
}

/// Answers paths without a resource.
fn plain(path: &str) -> Option<Response<Body>> {
    let check = path.trim_end_matches('/').trim_end_matches("/ping");
    if matches!(check, "/healthz" | "/livez" | "/readyz") {
        return Some(respond::text(200, "ok"));
    }
    if path.trim_end_matches('/') == "/version" {
        let version = json!({
            "major": "1", "minor": "36", "gitVersion": format!("{VERSION}+oarlock-dev-cluster"), "gitCommit": "",
            "gitTreeState": "clean", "buildDate": "1970-01-01T00:00:00Z", "goVersion": "", "compiler": "rustc",
            "platform": "",
        });
        return Some(respond::json(200, &version));
    }
    if path == "/" {
        let paths = ["/api", "/apis", "/healthz", "/livez", "/openapi/v3", "/readyz", "/version"];
        return Some(respond::json(200, &json!({"paths": paths})));
    }
    None
}

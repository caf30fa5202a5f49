//! Questions that are posted, answered and not stored: access reviews, who am I, and tokens for ServiceAccounts.

use crate::authorizer::{self, Authorizer};
use crate::call::{Call, format_time, now};
use crate::cluster::Cluster;
use crate::discovery::REVIEWS;
use crate::managed_fields::{self, Writer};
use crate::model::{FieldValidation, Model};
use crate::negotiation;
use crate::query::Query;
use crate::request_info::Target;
use crate::respond::{self, Body};
use crate::status::StatusError;
use crate::user::UserInfo;
use http::{HeaderMap, Response};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use tokio::time::Duration;

const DEFAULT_VALIDITY: u64 = 3600;

/// Returns true if the target is a resource of questions.
pub(crate) fn is_review(target: &Target) -> bool {
    target.version == "v1" && find(target).is_some()
}

fn find(target: &Target) -> Option<&'static (&'static str, &'static str, &'static str, bool)> {
    REVIEWS.iter().find(|(group, plural, ..)| *group == target.group && *plural == target.resource)
}

/// Answers a posted review.
pub(crate) fn answer(
    cluster: &Cluster,
    authorizer: &Authorizer,
    user: &UserInfo,
    target: &Target,
    headers: &HeaderMap,
    query: &Query,
    body: &[u8],
) -> Result<Response<Body>, StatusError> {
    let Some((group, plural, kind, _)) = find(target) else {
        return Err(StatusError::resource_not_served());
    };
    let (model, mut review) = decode(headers, body, group, kind)?;
    let (manager, now) = (query.manager(headers), now());
    managed_fields::after_update(
        &model,
        None,
        &mut review,
        Writer { manager: &manager, subresource: "", now: &now },
    );
    let answer = match *plural {
        "selfsubjectreviews" => {
            review["metadata"] = json!({"creationTimestamp": now});
            review["status"] = json!({"userInfo": user_info(user)});
            review
        }
        "tokenreviews" => {
            let token = review.pointer("/spec/token").and_then(Value::as_str).unwrap_or_default();
            let mut headers = HeaderMap::new();
            if let Ok(value) = format!("Bearer {token}").parse() {
                headers.insert(http::header::AUTHORIZATION, value);
            }
            review["status"] = match cluster.tokens.authenticate(&headers) {
                Ok(user) => json!({"authenticated": true, "user": user_info(&user)}),
                Err(_) => json!({"error": "invalid bearer token"}),
            };
            review
        }
        plural => authorizer::answer(authorizer, plural, &target.namespace, review, user)?,
    };
    Ok(respond::json(201, &answer))
}

fn decode(headers: &HeaderMap, body: &[u8], group: &str, kind: &str) -> Result<(Model, Value), StatusError> {
    let model = Model::builtin(group, "v1", kind)
        .ok_or_else(|| StatusError::internal(format!("the type {kind} is not known")))?;
    let review = negotiation::decode(headers, body, kind, Some(model.root()))?;
    let review = model.decode(review, FieldValidation::Ignore)?.object;
    Ok((model, review))
}

fn user_info(user: &UserInfo) -> Value {
    let mut info = json!({"username": user.name, "groups": user.groups});
    if !user.uid.is_empty() {
        info["uid"] = user.uid.as_str().into();
    }
    if !user.extra.is_empty() {
        info["extra"] = json!(user.extra);
    }
    info
}

/// Answers a TokenRequest: a token of this server for the ServiceAccount in the path.
pub(crate) fn token(call: &Call) -> Result<Response<Body>, StatusError> {
    let account =
        call.cluster.store.get(&call.resource.storage, &call.key()).ok_or_else(|| call.not_found())?;
    let mut request = if call.body.is_empty() {
        json!({"kind": "TokenRequest", "apiVersion": "authentication.k8s.io/v1", "spec": {}})
    } else {
        decode(&call.headers, &call.body, "authentication.k8s.io", "TokenRequest")?.1
    };
    let asked = request.pointer("/spec/expirationSeconds").and_then(Value::as_u64);
    let seconds = asked.unwrap_or(DEFAULT_VALIDITY).max(600);
    let mut user = UserInfo::service_account(&account.namespace, &account.name);
    user.uid = account.uid.clone();
    let token = call.cluster.tokens.issue(user, Some(Duration::from_secs(seconds)));
    let lasts = SignedDuration::from_secs(i64::try_from(seconds).unwrap_or(i64::MAX));
    let expires = Timestamp::now().checked_add(lasts).unwrap_or(Timestamp::MAX);
    request["metadata"] = json!({"name": account.name, "namespace": account.namespace});
    request["spec"]["expirationSeconds"] = seconds.into();
    request["status"] = json!({"token": token, "expirationTimestamp": format_time(expires)});
    Ok(respond::json(201, &request))
}

//! Access reviews, SelfSubjectReviews and TokenReviews: the server answers them and stores nothing.

use crate::authn::API_AUDIENCE;
use crate::authorizer::{self, Authorizer};

use crate::cluster::Cluster;
use crate::discovery::REVIEWS;
use crate::managed_fields::{self, Writer};
use crate::model::{FieldValidation, Model};
use crate::negotiation::{self, Accepted};
use crate::query::Query;
use crate::request_info::Target;
use crate::respond::{self, Body};
use crate::service_account_tokens::texts;
use crate::status::StatusError;
use crate::user::UserInfo;
use http::{HeaderMap, Response};
use serde_json::{Value, json};

/// Returns whether the target is a review.
pub(crate) fn is_review(target: &Target) -> bool {
    target.version == "v1" && find(target).is_some()
}

fn find(target: &Target) -> Option<&'static (&'static str, &'static str, &'static str, bool)> {
    REVIEWS.iter().find(|(group, plural, ..)| *group == target.group && *plural == target.resource)
}

/// Answers a review.
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
    let (manager, now) = (query.manager(headers), cluster.store.generated().now());
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
            let wanted = texts(review.pointer("/spec/audiences"));
            let wanted = if wanted.is_empty() { vec![API_AUDIENCE.to_owned()] } else { wanted };
            review["status"] = match cluster.review(token, &wanted) {
                Ok((user, audiences)) => {
                    json!({"authenticated": true, "user": user_info(&user), "audiences": audiences})
                }
                Err(refusal) => json!({"user": {}, "error": refusal.to_string()}),
            };
            review
        }
        plural => authorizer::answer(authorizer, plural, &target.namespace, review, user)?,
    };
    let notation = Accepted::negotiate(headers, true)?.notation;
    Ok(respond::document(201, notation, &answer, Some(model.root())))
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

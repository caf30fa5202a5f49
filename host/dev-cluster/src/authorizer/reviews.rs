//! The four access reviews, which are answered and not stored.

use super::{Attributes, Authorizer, text};
use crate::status::{Cause, GroupKind, StatusError};
use crate::user::UserInfo;
use serde_json::{Map, Value, json};

const GROUP: &str = "authorization.k8s.io";

/// Answers a review of this resource (`subjectaccessreviews`, …) that `asker` posted, in `namespace` if any.
pub(crate) fn answer(
    authorizer: &Authorizer,
    resource: &str,
    namespace: &str,
    mut review: Value,
    asker: &UserInfo,
) -> Result<Value, StatusError> {
    if resource == "selfsubjectrulesreviews" {
        return rules(authorizer, &review, asker);
    }
    let local = resource == "localsubjectaccessreviews";
    let of_self = resource == "selfsubjectaccessreviews";
    let causes = faults(&review, local, of_self);
    if !causes.is_empty() {
        return Err(StatusError::invalid(&GroupKind::new(GROUP, ""), "", causes));
    }
    if local && text(&review, "/metadata/namespace") != namespace {
        return Err(StatusError::bad_request(format!(
            "spec.resourceAttributes.namespace must match namespace: {namespace}"
        )));
    }
    let user = if of_self { asker.clone() } else { subject(&review) };
    let decision = authorizer.authorize(&user, &attributes(&review));
    let mut status = json!({"allowed": decision.allowed});
    if !decision.reason.is_empty() {
        status["reason"] = decision.reason.into();
    }
    review["status"] = status;
    Ok(review)
}

fn rules(authorizer: &Authorizer, review: &Value, asker: &UserInfo) -> Result<Value, StatusError> {
    let namespace = text(review, "/spec/namespace");
    if namespace.is_empty() {
        return Err(StatusError::bad_request("no namespace on request"));
    }
    let (rules, errors) = authorizer.rules_for(asker, namespace);
    let mut resource_rules = Vec::new();
    let mut other_rules = Vec::new();
    for rule in rules {
        let value = rule.to_value();
        if !rule.resources.is_empty() {
            resource_rules.push(without(&value, "nonResourceURLs"));
        }
        if !rule.urls.is_empty() {
            other_rules.push(json!({"verbs": rule.verbs, "nonResourceURLs": rule.urls}));
        }
    }
    let mut status = json!({
        "resourceRules": resource_rules, "nonResourceRules": other_rules, "incomplete": false,
    });
    if !errors.is_empty() {
        let error = match errors.as_slice() {
            [one] => one.clone(),
            several => format!("[{}]", several.join(", ")),
        };
        status["evaluationError"] = error.into();
    }
    Ok(json!({
        "kind": "SelfSubjectRulesReview", "apiVersion": "authorization.k8s.io/v1",
        "metadata": {}, "spec": {}, "status": status,
    }))
}

fn without(value: &Value, key: &str) -> Value {
    let kept: Map<String, Value> = value
        .as_object()
        .into_iter()
        .flatten()
        .filter(|(k, _)| *k != key)
        .map(|(k, v)| (k.clone(), v.clone()))
        .collect();
    Value::Object(kept)
}

fn faults(review: &Value, local: bool, of_self: bool) -> Vec<Cause> {
    let mut causes = Vec::new();
    let resource = review.pointer("/spec/resourceAttributes");
    let other = review.pointer("/spec/nonResourceAttributes");
    if let (Some(_), Some(other)) = (resource, other) {
        causes.push(Cause::invalid(
            "spec.nonResourceAttributes",
            other,
            "cannot be specified in combination with resourceAttributes",
        ));
    }
    if resource.is_none() && other.is_none() {
        causes.push(Cause::invalid(
            "spec.resourceAttributes",
            &Value::Null,
            "exactly one of nonResourceAttributes or resourceAttributes must be specified",
        ));
    }
    let no_groups = review.pointer("/spec/groups").and_then(Value::as_array).is_none_or(Vec::is_empty);
    if !of_self && text(review, "/spec/user").is_empty() && no_groups {
        causes.push(Cause::invalid(
            "spec.user",
            &json!(""),
            "at least one of user or group must be specified",
        ));
    }
    let allowed_metadata: &[&str] = if local { &["namespace", "managedFields"] } else { &["managedFields"] };
    let metadata = review.get("metadata").and_then(Value::as_object);
    if metadata.is_some_and(|metadata| metadata.keys().any(|key| !allowed_metadata.contains(&key.as_str()))) {
        let why = if local { "must be empty except for namespace" } else { "must be empty" };
        causes.push(Cause::invalid("metadata", &review["metadata"], why));
    }
    if local {
        let namespace =
            review.pointer("/spec/resourceAttributes/namespace").cloned().unwrap_or_else(|| json!(""));
        if resource.is_some() && namespace.as_str() != Some(text(review, "/metadata/namespace")) {
            causes.push(Cause::invalid(
                "spec.resourceAttributes.namespace",
                &namespace,
                "must match metadata.namespace",
            ));
        }
        if let Some(other) = other {
            causes.push(Cause::invalid(
                "spec.nonResourceAttributes",
                other,
                "disallowed on this kind of request",
            ));
        }
    }
    causes
}

fn attributes(review: &Value) -> Attributes<'_> {
    let of = |key: &str| text(review, &format!("/spec/resourceAttributes/{key}"));
    let other = review.pointer("/spec/nonResourceAttributes");
    if let Some(other) = other {
        return Attributes {
            verb: text(other, "/verb"),
            path: Some(text(other, "/path")),
            ..Attributes::default()
        };
    }
    Attributes {
        verb: of("verb"),
        group: of("group"),
        resource: of("resource"),
        subresource: of("subresource"),
        namespace: of("namespace"),
        name: of("name"),
        path: None,
    }
}

/// Returns the user of a review, with exactly the groups in the review.
fn subject(review: &Value) -> UserInfo {
    let strings = |value: &Value| -> Vec<String> {
        value.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let spec = &review["spec"];
    UserInfo {
        name: text(spec, "/user").to_owned(),
        uid: text(spec, "/uid").to_owned(),
        groups: strings(&spec["groups"]),
        extra: spec["extra"]
            .as_object()
            .into_iter()
            .flatten()
            .map(|(key, values)| (key.clone(), strings(values)))
            .collect(),
    }
}

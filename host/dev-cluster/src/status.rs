//! The error of this crate: a `metav1.Status` of kind Failure, with the messages of kube-apiserver.
//!
//! Constructors are named after apimachinery's (`NewNotFound`, `NewConflict`, …), so that messages can be
//! compared.

use serde::Serialize;
use serde_json::{Value, json};
use std::fmt;

/// A refused request: HTTP code, reason and message, with details where kube-apiserver has them.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{message}")]
pub(crate) struct StatusError {
    pub(crate) code: u16,
    /// The `reason` of the Status; empty where kube-apiserver omits it.
    pub(crate) reason: &'static str,
    pub(crate) message: String,
    pub(crate) details: Option<Box<Details>>,
    /// `metadata.continue`: the token that continues a list whose version has expired.
    pub(crate) continue_token: Option<String>,
}

/// `status.details`.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(crate) struct Details {
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) name: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) group: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) kind: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) uid: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) causes: Vec<Cause>,
    #[serde(rename = "retryAfterSeconds", skip_serializing_if = "Option::is_none")]
    pub(crate) retry_after_seconds: Option<u32>,
}

/// One of several reasons why an object was refused.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(crate) struct Cause {
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) reason: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) message: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) field: String,
}

/// A resource without its version, as error messages name it: `deployments.apps`, `pods`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct GroupResource {
    pub(crate) group: String,
    pub(crate) resource: String,
}

/// A kind without its version, as validation messages name it: `Deployment.apps`, `Pod`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct GroupKind {
    pub(crate) group: String,
    pub(crate) kind: String,
}

// === impl StatusError ===

impl StatusError {
    fn new(code: u16, reason: &'static str, message: impl Into<String>) -> Self {
        Self { code, reason, message: message.into(), details: None, continue_token: None }
    }

    fn with_object(mut self, group: &str, kind: &str, name: &str) -> Self {
        self.details = Some(Box::new(Details {
            name: name.into(),
            group: group.into(),
            kind: kind.into(),
            ..Details::default()
        }));
        self
    }

    /// 400: the request is malformed.
    pub(crate) fn bad_request(message: impl Into<String>) -> Self {
        Self::new(400, "BadRequest", message)
    }

    /// 401: missing or unknown credentials.
    pub(crate) fn unauthorized() -> Self {
        Self::new(401, "Unauthorized", "Unauthorized")
    }

    /// 403 for an object, or for a whole resource if `name` is empty.
    pub(crate) fn forbidden(resource: &GroupResource, name: &str, why: impl fmt::Display) -> Self {
        let message = match (resource.resource.is_empty(), name.is_empty()) {
            (true, _) => format!("forbidden: {why}"),
            (false, true) => format!("{resource} is forbidden: {why}"),
            (false, false) => format!("{resource} {name:?} is forbidden: {why}"),
        };
        Self::new(403, "Forbidden", message).with_object(&resource.group, &resource.resource, name)
    }

    /// 404 for a missing object.
    pub(crate) fn not_found(resource: &GroupResource, name: &str) -> Self {
        Self::new(404, "NotFound", format!("{resource} {name:?} not found")).with_object(
            &resource.group,
            &resource.resource,
            name,
        )
    }

    /// 404 for an unknown resource of a served group version.
    pub(crate) fn resource_not_served() -> Self {
        Self::new(404, "NotFound", "the server could not find the requested resource").with_object("", "", "")
    }

    /// 405 for a verb that the resource does not have.
    pub(crate) fn method_not_allowed() -> Self {
        Self::new(405, "MethodNotAllowed", "the server does not allow this method on the requested resource")
            .with_object("", "", "")
    }

    /// 405 that names the verb and the resource.
    pub(crate) fn method_not_supported(resource: &GroupResource, verb: &str) -> Self {
        Self::new(
            405,
            "MethodNotAllowed",
            format!("{verb} is not supported on resources of kind {:?}", resource.to_string()),
        )
        .with_object(&resource.group, &resource.resource, "")
    }

    /// 406: the server has no form that the client accepts.
    pub(crate) fn not_acceptable(accepted: &[&str]) -> Self {
        Self::new(
            406,
            "NotAcceptable",
            format!("only the following media types are accepted: {}", accepted.join(", ")),
        )
    }

    /// 409: the object exists already.
    pub(crate) fn already_exists(resource: &GroupResource, name: &str) -> Self {
        Self::new(409, "AlreadyExists", format!("{resource} {name:?} already exists")).with_object(
            &resource.group,
            &resource.resource,
            name,
        )
    }

    /// 409: a precondition (resourceVersion, uid, field ownership) does not hold.
    pub(crate) fn conflict(resource: &GroupResource, name: &str, why: impl fmt::Display) -> Self {
        Self::new(409, "Conflict", format!("Operation cannot be fulfilled on {resource} {name:?}: {why}"))
            .with_object(&resource.group, &resource.resource, name)
    }

    /// 409 for an update from an old resourceVersion.
    pub(crate) fn stale(resource: &GroupResource, name: &str) -> Self {
        Self::conflict(
            resource,
            name,
            "the object has been modified; please apply your changes to the latest version and try again",
        )
    }

    /// 410: the version is no longer in the history.
    pub(crate) fn expired(message: impl Into<String>) -> Self {
        Self::new(410, "Expired", message)
    }

    /// 413: the body is over the limit.
    pub(crate) fn too_large(limit: usize) -> Self {
        Self::new(413, "RequestEntityTooLarge", format!("Request entity too large: limit is {limit}"))
    }

    /// 415: the server cannot decode the media type of the body.
    pub(crate) fn unsupported_media_type(accepted: &[&str]) -> Self {
        Self::new(
            415,
            "UnsupportedMediaType",
            format!(
                "the body of the request was in an unknown format - accepted media types include: {}",
                accepted.join(", ")
            ),
        )
    }

    /// 422: the object is invalid.
    pub(crate) fn invalid(kind: &GroupKind, name: &str, causes: Vec<Cause>) -> Self {
        let messages: Vec<String> = causes.iter().map(Cause::to_string).collect();
        let message = match messages.as_slice() {
            [one] => one.clone(),
            several => format!("[{}]", several.join(", ")),
        };
        let mut error = Self::new(422, "Invalid", format!("{kind} {name:?} is invalid: {message}"))
            .with_object(&kind.group, &kind.kind, name);
        if let Some(details) = &mut error.details {
            details.causes = causes;
        }
        error
    }

    /// 422 for a body that is well-formed but cannot be processed (a patch that does not apply).
    pub(crate) fn unprocessable(message: impl Into<String>) -> Self {
        Self::new(422, "Invalid", message)
    }

    /// 429, with the seconds of Retry-After; 0 omits the header.
    pub(crate) fn too_many_requests(message: impl Into<String>, retry_after_seconds: u32) -> Self {
        let mut error = Self::new(429, "TooManyRequests", message);
        error.details = Some(Box::new(Details {
            retry_after_seconds: Some(retry_after_seconds).filter(|seconds| *seconds > 0),
            ..Details::default()
        }));
        error
    }

    /// 500.
    pub(crate) fn internal(why: impl fmt::Display) -> Self {
        let mut error = Self::new(500, "InternalError", format!("Internal error occurred: {why}"));
        error.details = Some(Box::new(Details {
            causes: vec![Cause { message: why.to_string(), ..Cause::default() }],
            ..Details::default()
        }));
        error
    }

    /// 500 without a reason, as for storage errors that kube-apiserver does not translate.
    pub(crate) fn untranslated(message: impl Into<String>) -> Self {
        Self::new(500, "", message)
    }

    /// 504 for a resourceVersion that this server has not reached.
    pub(crate) fn too_large_resource_version(wanted: u64, current: u64) -> Self {
        let mut error = Self::new(
            504,
            "Timeout",
            format!("Timeout: Too large resource version: {wanted}, current: {current}"),
        );
        error.details = Some(Box::new(Details {
            causes: vec![Cause {
                reason: "ResourceVersionTooLarge".into(),
                message: "Too large resource version".into(),
                field: String::new(),
            }],
            retry_after_seconds: Some(1),
            ..Details::default()
        }));
        error
    }

    /// Returns the same error with these causes in its details.
    #[must_use]
    pub(crate) fn with_causes(mut self, causes: Vec<Cause>) -> Self {
        self.details.get_or_insert_with(Box::default).causes = causes;
        self
    }

    /// Returns the error as a `metav1.Status`.
    pub(crate) fn to_status(&self) -> Value {
        let mut status = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {},
            "status": "Failure", "message": self.message,
        });
        if let Some(token) = &self.continue_token {
            status["metadata"]["continue"] = token.as_str().into();
        }
        if !self.reason.is_empty() {
            status["reason"] = self.reason.into();
        }
        if let Some(details) = &self.details {
            status["details"] = json!(details);
        }
        status["code"] = self.code.into();
        status
    }
}

// === impl Cause ===

impl Cause {
    /// Returns a cause as field validation reports it; `reason` is one of FieldValueInvalid,
    /// FieldValueRequired, ….
    pub(crate) fn new(reason: &str, field: impl Into<String>, message: impl Into<String>) -> Self {
        Self { reason: reason.into(), message: message.into(), field: field.into() }
    }

    /// `Required value`, followed by a colon and the reason unless it is empty.
    pub(crate) fn required(field: impl Into<String>, why: &str) -> Self {
        let message =
            if why.is_empty() { "Required value".to_owned() } else { format!("Required value: {why}") };
        Self::new("FieldValueRequired", field, message)
    }

    /// `Invalid value: <value as JSON>: why`.
    pub(crate) fn invalid(field: impl Into<String>, value: &Value, why: impl fmt::Display) -> Self {
        Self::new("FieldValueInvalid", field, format!("Invalid value: {value}: {why}"))
    }

    /// `Forbidden: why`.
    pub(crate) fn forbidden(field: impl Into<String>, why: impl fmt::Display) -> Self {
        Self::new("FieldValueForbidden", field, format!("Forbidden: {why}"))
    }

    /// Returns whether this error means that CEL rules could see values of unexpected types.
    pub(crate) fn blocks_rules(&self) -> bool {
        matches!(
            self.reason.as_str(),
            "FieldValueNotSupported"
                | "FieldValueRequired"
                | "FieldValueTooLong"
                | "FieldValueTooMany"
                | "FieldValueTypeInvalid"
        )
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.field.is_empty() {
            f.write_str(&self.message)
        } else {
            write!(f, "{}: {}", self.field, self.message)
        }
    }
}

// === impl GroupResource ===

impl GroupResource {
    pub(crate) fn new(group: impl Into<String>, resource: impl Into<String>) -> Self {
        Self { group: group.into(), resource: resource.into() }
    }
}

impl fmt::Display for GroupResource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.group.as_str() {
            "" => f.write_str(&self.resource),
            group => write!(f, "{}.{group}", self.resource),
        }
    }
}

// === impl GroupKind ===

impl GroupKind {
    pub(crate) fn new(group: impl Into<String>, kind: impl Into<String>) -> Self {
        Self { group: group.into(), kind: kind.into() }
    }
}

impl fmt::Display for GroupKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.group.as_str() {
            "" => f.write_str(&self.kind),
            group => write!(f, "{}.{group}", self.kind),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn not_found_has_the_message_of_kube_apiserver() {
        let error = StatusError::not_found(&GroupResource::new("apps", "deployments"), "web");
        assert_eq!(
            error.to_status().to_string(),
            r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"deployments.apps \"web\" not found","reason":"NotFound","details":{"name":"web","group":"apps","kind":"deployments"},"code":404}"#
        );
    }

    #[test]
    fn several_causes_are_joined_in_brackets() {
        let error = StatusError::invalid(
            &GroupKind::new("", "Pod"),
            "p",
            vec![
                Cause::required("spec.containers", ""),
                Cause::required("metadata.name", "name or generateName is required"),
            ],
        );
        assert_eq!(
            error.message,
            "Pod \"p\" is invalid: [spec.containers: Required value, metadata.name: Required value: name or generateName is required]"
        );
    }
}

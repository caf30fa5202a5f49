//! The error every part of this crate answers with: a `metav1.Status` of kind Failure, worded as the real API server words it.
//!
//! Constructors carry the names of apimachinery's (`NewNotFound`, `NewConflict`, …), so that messages can be compared.

use serde::Serialize;
use serde_json::{Value, json};
use std::fmt;

/// A refused request: HTTP code, machine-readable reason and message, with details where the real server has them.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{message}")]
pub struct StatusError {
    pub code: u16,
    /// The `reason` of the Status; empty where the real server leaves it out.
    pub reason: &'static str,
    pub message: String,
    pub details: Option<Box<Details>>,
    /// `metadata.continue`: where a list can go on whose version has expired.
    pub continue_token: Option<String>,
}

/// `status.details`.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Details {
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub group: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub kind: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub uid: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub causes: Vec<Cause>,
    #[serde(rename = "retryAfterSeconds", skip_serializing_if = "Option::is_none")]
    pub retry_after_seconds: Option<u32>,
}

/// One reason among several why an object was refused.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Cause {
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reason: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub field: String,
}

/// A resource without its version, as error messages name it: `deployments.apps`, `pods`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GroupResource {
    pub group: String,
    pub resource: String,
}

/// A kind without its version, as validation messages name it: `Deployment.apps`, `Pod`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GroupKind {
    pub group: String,
    pub kind: String,
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

    /// 400: the request itself makes no sense.
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::new(400, "BadRequest", message)
    }

    /// 401: no or unknown credentials.
    pub fn unauthorized() -> Self {
        Self::new(401, "Unauthorized", "Unauthorized")
    }

    /// 403 for an object, or for a whole resource when `name` is empty.
    pub fn forbidden(resource: &GroupResource, name: &str, why: impl fmt::Display) -> Self {
        let message = match (resource.resource.is_empty(), name.is_empty()) {
            (true, _) => format!("forbidden: {why}"),
            (false, true) => format!("{resource} is forbidden: {why}"),
            (false, false) => format!("{resource} {name:?} is forbidden: {why}"),
        };
        Self::new(403, "Forbidden", message).with_object(&resource.group, &resource.resource, name)
    }

    /// 404 for an object that is not there.
    pub fn not_found(resource: &GroupResource, name: &str) -> Self {
        Self::new(404, "NotFound", format!("{resource} {name:?} not found")).with_object(
            &resource.group,
            &resource.resource,
            name,
        )
    }

    /// 404 for a resource that is not served in a group version that is.
    pub fn resource_not_served() -> Self {
        Self::new(404, "NotFound", "the server could not find the requested resource").with_object("", "", "")
    }

    /// 405 for a verb that the resource does not have.
    pub fn method_not_allowed() -> Self {
        Self::new(405, "MethodNotAllowed", "the server does not allow this method on the requested resource")
            .with_object("", "", "")
    }

    /// 405 that says which verb on which resource is left out of this server.
    pub fn method_not_supported(resource: &GroupResource, verb: &str) -> Self {
        Self::new(
            405,
            "MethodNotAllowed",
            format!("{verb} is not supported on resources of kind {:?}", resource.to_string()),
        )
        .with_object(&resource.group, &resource.resource, "")
    }

    /// 406: nothing of what the client accepts can be produced.
    pub fn not_acceptable(accepted: &[&str]) -> Self {
        Self::new(
            406,
            "NotAcceptable",
            format!("only the following media types are accepted: {}", accepted.join(", ")),
        )
    }

    /// 409: an object of that name is there already.
    pub fn already_exists(resource: &GroupResource, name: &str) -> Self {
        Self::new(409, "AlreadyExists", format!("{resource} {name:?} already exists")).with_object(
            &resource.group,
            &resource.resource,
            name,
        )
    }

    /// 409: a precondition (resourceVersion, uid, field ownership) does not hold.
    pub fn conflict(resource: &GroupResource, name: &str, why: impl fmt::Display) -> Self {
        Self::new(409, "Conflict", format!("Operation cannot be fulfilled on {resource} {name:?}: {why}"))
            .with_object(&resource.group, &resource.resource, name)
    }

    /// 409 for an update of an object that has moved on.
    pub fn stale(resource: &GroupResource, name: &str) -> Self {
        Self::conflict(
            resource,
            name,
            "the object has been modified; please apply your changes to the latest version and try again",
        )
    }

    /// 410: the version asked for is no longer in the history.
    pub fn expired(message: impl Into<String>) -> Self {
        Self::new(410, "Expired", message)
    }

    /// 413: the body is over the limit.
    pub fn too_large(limit: usize) -> Self {
        Self::new(413, "RequestEntityTooLarge", format!("Request entity too large: limit is {limit}"))
    }

    /// 415: the body is in a format that is not understood.
    pub fn unsupported_media_type(accepted: &[&str]) -> Self {
        Self::new(
            415,
            "UnsupportedMediaType",
            format!(
                "the body of the request was in an unknown format - accepted media types include: {}",
                accepted.join(", ")
            ),
        )
    }

    /// 422: the object is understood and wrong.
    pub fn invalid(kind: &GroupKind, name: &str, causes: Vec<Cause>) -> Self {
        let said: Vec<String> = causes.iter().map(Cause::to_string).collect();
        let said = match said.as_slice() {
            [one] => one.clone(),
            several => format!("[{}]", several.join(", ")),
        };
        let mut error = Self::new(422, "Invalid", format!("{kind} {name:?} is invalid: {said}")).with_object(
            &kind.group,
            &kind.kind,
            name,
        );
        if let Some(details) = &mut error.details {
            details.causes = causes;
        }
        error
    }

    /// 422 for a body that is understood but cannot be worked on (a patch that does not apply).
    pub fn unprocessable(message: impl Into<String>) -> Self {
        Self::new(422, "Invalid", message)
    }

    /// 429, with the seconds after which the client should come back; 0 for no such advice.
    pub fn too_many_requests(message: impl Into<String>, retry_after_seconds: u32) -> Self {
        let mut error = Self::new(429, "TooManyRequests", message);
        error.details = Some(Box::new(Details {
            retry_after_seconds: Some(retry_after_seconds).filter(|seconds| *seconds > 0),
            ..Details::default()
        }));
        error
    }

    /// 500.
    pub fn internal(why: impl fmt::Display) -> Self {
        let mut error = Self::new(500, "InternalError", format!("Internal error occurred: {why}"));
        error.details = Some(Box::new(Details {
            causes: vec![Cause { message: why.to_string(), ..Cause::default() }],
            ..Details::default()
        }));
        error
    }

    /// 500 without a reason, as storage errors that nobody translated come out.
    pub fn untranslated(message: impl Into<String>) -> Self {
        Self::new(500, "", message)
    }

    /// 503.
    pub fn service_unavailable(message: impl Into<String>) -> Self {
        Self::new(503, "ServiceUnavailable", message)
    }

    /// 504 for a resourceVersion that this server has not reached.
    pub fn too_large_resource_version(wanted: u64, current: u64) -> Self {
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
    pub fn with_causes(mut self, causes: Vec<Cause>) -> Self {
        self.details.get_or_insert_with(Box::default).causes = causes;
        self
    }

    /// Returns the error as the `metav1.Status` that goes over the wire.
    pub fn to_status(&self) -> Value {
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
    /// Returns a cause as field validation reports it; `reason` is one of FieldValueInvalid, FieldValueRequired, ….
    pub fn new(reason: &str, field: impl Into<String>, message: impl Into<String>) -> Self {
        Self { reason: reason.into(), message: message.into(), field: field.into() }
    }

    /// `Required value`, with the reason why after a colon unless it is empty.
    pub fn required(field: impl Into<String>, why: &str) -> Self {
        let message =
            if why.is_empty() { "Required value".to_owned() } else { format!("Required value: {why}") };
        Self::new("FieldValueRequired", field, message)
    }

    /// `Invalid value: <value as JSON>: why`.
    pub fn invalid(field: impl Into<String>, value: &Value, why: impl fmt::Display) -> Self {
        Self::new("FieldValueInvalid", field, format!("Invalid value: {value}: {why}"))
    }

    /// `Forbidden: why`.
    pub fn forbidden(field: impl Into<String>, why: impl fmt::Display) -> Self {
        Self::new("FieldValueForbidden", field, format!("Forbidden: {why}"))
    }

    /// Returns whether rules in CEL might see other types than they expect in an object that is wrong in this way.
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
    pub fn new(group: impl Into<String>, resource: impl Into<String>) -> Self {
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
    pub fn new(group: impl Into<String>, kind: impl Into<String>) -> Self {
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
    fn not_found_is_worded_as_the_real_server_words_it() {
        let error = StatusError::not_found(&GroupResource::new("apps", "deployments"), "web");
        assert_eq!(
            error.to_status().to_string(),
            r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"deployments.apps \"web\" not found","reason":"NotFound","details":{"name":"web","group":"apps","kind":"deployments"},"code":404}"#
        );
    }

    #[test]
    fn several_causes_are_bracketed() {
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

//! Converts failures of requests to errors of the contract.
//!
//! A plugin must know whether a write may have happened: a request that was never sent is `unavailable`; a
//! request without a response is `timeout`.

use std::{error::Error as StdError, time::Duration};

use http::{HeaderMap, StatusCode, header::RETRY_AFTER};
use kube::core::Status;
use oarlock_plugin::contract::{Error, ThrottledInfo};

use super::secret_values;

/// Converts an error response.
///
/// `preconditions` says whether the request carried a uid or resourceVersion that had to match: for a patch
/// the API server reports a mismatch as a change of an immutable field. `secret` is the Secret that was sent,
/// if it was one: no error has its values.
pub(super) fn from_response(
    what: &str,
    code: StatusCode,
    headers: &HeaderMap,
    body: &[u8],
    preconditions: bool,
    secret: Option<&[u8]>,
) -> Error {
    let status: Status = serde_json::from_slice(body).unwrap_or_else(|_| {
        // A proxy, or the outer filters of the API server, respond in plain text.
        let text = String::from_utf8_lossy(body).trim().chars().take(512).collect();
        Status { code: code.as_u16(), message: text, ..Status::default() }
    });
    let message = match status.message.as_str() {
        "" => format!("{what}: {code}"),
        message => format!("{what}: {message}"),
    };
    let message = match secret {
        Some(sent) => secret_values::hidden(message, sent),
        None => message,
    };
    match (status.reason.as_str(), code.as_u16()) {
        ("AlreadyExists", _) => Error::AlreadyExists(message),
        ("Conflict", _) | (_, 409) => Error::Conflict(message),
        ("ServerTimeout" | "Timeout", _) | (_, 504 | 408) => Error::Timeout(message),
        (_, 401) => Error::Unavailable(format!("{what}: the API server rejected the host's credentials")),
        (_, 403) => Error::Forbidden(message),
        (_, 404) => Error::NotFound(message),
        (_, 410) => Error::Gone(message),
        (_, 413) => Error::LimitExceeded(message),
        (_, 429) => {
            Error::Throttled(ThrottledInfo { message, retry_after_ms: retry_after(headers, &status) })
        }
        (_, 422) if preconditions && blames(&status, &["metadata.uid", "metadata.resourceVersion"]) => {
            Error::Conflict(message)
        }
        (_, 400..=499) => Error::Invalid(message),
        _ => Error::Unavailable(message),
    }
}

/// Converts an error of a request without a response.
pub(super) fn from_transport(what: &str, error: &kube::Error) -> Error {
    let text = format!("{what}: {}", crate::chain::text(error));
    if never_left(error) { Error::Unavailable(text) } else { Error::Timeout(text) }
}

/// Returns the error of a response that did not arrive in time.
pub(super) fn no_answer(what: &str, after: Duration) -> Error {
    Error::Timeout(format!("{what}: no answer within {} s", after.as_secs()))
}

fn never_left(error: &kube::Error) -> bool {
    if matches!(error, kube::Error::Auth(_) | kube::Error::BuildRequest(_) | kube::Error::HttpError(_)) {
        return true;
    }
    let mut cause: Option<&(dyn StdError + 'static)> = Some(error);
    while let Some(error) = cause {
        if let Some(error) = error.downcast_ref::<hyper_util::client::legacy::Error>() {
            return error.is_connect();
        }
        cause = error.source();
    }
    false
}

fn blames(status: &Status, fields: &[&str]) -> bool {
    let causes = status.details.as_ref().map(|details| details.causes.as_slice()).unwrap_or_default();
    causes.iter().any(|cause| fields.contains(&cause.field.as_str()))
}

fn retry_after(headers: &HeaderMap, status: &Status) -> Option<u32> {
    let header = headers.get(RETRY_AFTER).and_then(|value| value.to_str().ok()?.parse::<u32>().ok());
    let details = status.details.as_ref().map(|details| details.retry_after_seconds).filter(|&it| it > 0);
    header.or(details).map(|seconds| seconds.saturating_mul(1000))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn map(code: u16, reason: &str) -> Error {
        let body = json!({"kind": "Status", "reason": reason, "message": "m", "code": code}).to_string();
        let code = StatusCode::from_u16(code).unwrap();
        from_response("get a", code, &HeaderMap::new(), body.as_bytes(), false, None)
    }

    #[test]
    fn every_answer_has_its_word() {
        let message = || "get a: m".to_owned();
        assert_eq!(map(404, "NotFound"), Error::NotFound(message()));
        assert_eq!(map(409, "AlreadyExists"), Error::AlreadyExists(message()));
        assert_eq!(map(409, "Conflict"), Error::Conflict(message()));
        assert_eq!(map(403, "Forbidden"), Error::Forbidden(message()));
        assert_eq!(map(400, "BadRequest"), Error::Invalid(message()));
        assert_eq!(map(422, "Invalid"), Error::Invalid(message()));
        assert_eq!(map(405, "MethodNotAllowed"), Error::Invalid(message()));
        assert_eq!(map(410, "Expired"), Error::Gone(message()));
        assert_eq!(map(413, "RequestEntityTooLarge"), Error::LimitExceeded(message()));
        assert_eq!(map(500, "InternalError"), Error::Unavailable(message()));
        assert_eq!(map(503, "ServiceUnavailable"), Error::Unavailable(message()));
        assert_eq!(map(500, "ServerTimeout"), Error::Timeout(message()));
        assert_eq!(map(504, "Timeout"), Error::Timeout(message()));
    }

    #[test]
    fn a_plain_429_carries_its_header() {
        let mut headers = HeaderMap::new();
        headers.insert(RETRY_AFTER, "3".parse().unwrap());
        let error = from_response(
            "get a",
            StatusCode::TOO_MANY_REQUESTS,
            &headers,
            b"Too many requests\n",
            false,
            None,
        );
        let message = "get a: Too many requests".to_owned();
        assert_eq!(error, Error::Throttled(ThrottledInfo { message, retry_after_ms: Some(3000) }));
    }

    #[test]
    fn a_uid_that_does_not_match_is_a_conflict_when_it_was_asked_for() {
        let body = json!({
            "reason": "Invalid", "message": "field is immutable",
            "details": {"causes": [{"field": "metadata.uid", "reason": "FieldValueInvalid"}]},
        })
        .to_string();
        let map = |preconditions| {
            let code = StatusCode::UNPROCESSABLE_ENTITY;
            from_response("patch a", code, &HeaderMap::new(), body.as_bytes(), preconditions, None)
        };
        assert!(matches!(map(true), Error::Conflict(_)));
        assert!(matches!(map(false), Error::Invalid(_)));
    }
}

//! Errors of API servers and networks.

use std::io;
use std::time::Duration;

use serde_json::Value;

use crate::list_watch::{ApiError, Cause, DecodeError, Status};

/// 410: the version is too old.
pub fn expired() -> Status {
    status(410, "Expired", "too old resource version: 1 (7)")
}

/// 429, with the time to wait.
pub fn too_many_requests(retry_after: Option<Duration>) -> Status {
    Status { retry_after, ..status(429, "TooManyRequests", "too many requests") }
}

/// 504: the version is newer than any the server has.
pub fn too_large_resource_version() -> Status {
    let cause =
        Cause { reason: "ResourceVersionTooLarge".into(), message: "Too large resource version".into() };
    Status { causes: vec![cause], ..status(504, "Timeout", "Too large resource version: 9, current: 1") }
}

/// 500.
pub fn internal() -> Status {
    status(500, "InternalError", "Internal error occurred: etcd is gone")
}

/// 404, as for a resource that is not served.
pub fn not_found() -> Status {
    status(404, "NotFound", "the server could not find the requested resource")
}

/// 403.
pub fn forbidden() -> Status {
    status(403, "Forbidden", "pods is forbidden: User \"u\" cannot list resource \"pods\" in API group \"\"")
}

/// 422: the server does not support watches with initial events.
pub fn invalid() -> Status {
    let message = "ListOptions.meta.k8s.io \"\" is invalid: sendInitialEvents: Forbidden: sendInitialEvents is forbidden \
                   for watch unless the WatchList feature gate is enabled";
    status(422, "Invalid", message)
}

/// The server's address refuses connections.
pub fn connection_refused() -> ApiError {
    ApiError::Transport(io::Error::from(io::ErrorKind::ConnectionRefused).into())
}

/// The connection broke.
pub fn connection_reset() -> ApiError {
    ApiError::Transport(io::Error::from(io::ErrorKind::ConnectionReset).into())
}

/// The connection ended within an answer.
pub fn unexpected_eof() -> ApiError {
    ApiError::Transport(io::Error::from(io::ErrorKind::UnexpectedEof).into())
}

/// The server, or a proxy before it, sent text that is not JSON.
pub fn garbage() -> ApiError {
    let source = match serde_json::from_str::<Value>("<html>") {
        Ok(_) => unreachable!("HTML is not JSON"),
        Err(source) => source,
    };
    ApiError::Decode(DecodeError::Malformed { what: "watch event", source })
}

/// An answer with this code, reason and message.
pub fn status(code: u16, reason: &str, message: &str) -> Status {
    Status { code, reason: reason.to_owned(), message: message.to_owned(), ..Status::default() }
}

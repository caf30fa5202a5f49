//! The errors of requests, and the classes by which the reflector decides about retries (RL-30 to RL-33).

use std::error::Error as StdError;
use std::fmt;
use std::io;
use std::time::Duration;

use crate::object;

/// Why a list or a watch failed.
#[derive(Debug, thiserror::Error)]
pub enum ApiError {
    /// The server answered with a failure.
    #[error(transparent)]
    Status(#[from] Status),
    /// The answer did not arrive, or not all of it.
    #[error("cannot talk to the API server")]
    Transport(#[source] Box<dyn StdError + Send + Sync>),
    /// The answer cannot be decoded.
    #[error("cannot decode the API server's answer")]
    Decode(#[from] DecodeError),
}

/// The API server's description of a failure (`metav1.Status`), or one made from an HTTP answer without it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Status {
    /// HTTP status code.
    pub code: u16,
    /// The machine-readable reason, such as `Expired`; empty if the server does not give one.
    pub reason: String,
    /// The description for people.
    pub message: String,
    /// The causes.
    pub causes: Vec<Cause>,
    /// The wait before the next request that the server asks for.
    pub retry_after: Option<Duration>,
}

/// One of the causes in a [`Status`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cause {
    /// The machine-readable reason (`reason` in the JSON, the type of the cause in Go).
    pub reason: String,
    /// The description for people.
    pub message: String,
}

/// Why an answer cannot be decoded.
#[derive(Debug, thiserror::Error)]
pub enum DecodeError {
    /// It is not JSON, or not of the expected shape.
    #[error("malformed {what}")]
    Malformed {
        /// The kind of text.
        what: &'static str,
        /// The cause, with its position.
        #[source]
        source: serde_json::Error,
    },
    /// It is not UTF-8.
    #[error("{what} is not UTF-8")]
    NotUtf8 {
        /// The kind of text.
        what: &'static str,
        /// The cause, with its position.
        #[source]
        source: std::str::Utf8Error,
    },
    /// One of its objects cannot be decoded.
    #[error("bad object in the answer")]
    Object(#[from] object::Error),
    /// It is longer than the limit.
    #[error("{what} is longer than {limit} bytes")]
    TooLong {
        /// The kind of text.
        what: &'static str,
        /// The limit.
        limit: usize,
    },
    /// It has no resourceVersion.
    #[error("{0} without a resourceVersion")]
    NoVersion(&'static str),
    /// A list is not a list of objects, but for example a table (RL-26).
    #[error("unsupported list gvk: {0}")]
    UnsupportedList(String),
}

/// The connection broke, or was silent for too long, before the answer. The server may or may not have got
/// the request.
#[derive(Debug, thiserror::Error)]
#[error("no answer arrived")]
pub struct Unanswered(#[source] pub Box<dyn StdError + Send + Sync>);

// === impl ApiError ===

impl ApiError {
    /// Returns whether the requested version is too old: reason `Expired` or `Gone`, or code 410 with an
    /// unknown reason (RL-30).
    pub fn is_expired(&self) -> bool {
        self.status().is_some_and(Status::is_expired)
    }

    /// Returns whether the requested version is newer than the newest of this server (RL-31).
    pub fn is_too_large_rv(&self) -> bool {
        self.status().is_some_and(Status::is_too_large_rv)
    }

    /// Returns whether the same request may be repeated after a back-off: connection refused, or 429 (RL-32).
    pub fn is_retriable_in_place(&self) -> bool {
        match self {
            Self::Status(status) => status.is_too_many_requests(),
            Self::Transport(source) => is_connection_refused(&**source),
            Self::Decode(_) => false,
        }
    }

    /// Returns whether the connection broke before the answer, if the source reports it: see [`Unanswered`].
    pub fn is_unanswered(&self) -> bool {
        matches!(self, Self::Transport(source) if source.is::<Unanswered>())
    }

    /// Returns whether the server failed internally: reason `InternalError`, or code 500 with an unknown
    /// reason (RL-33).
    pub fn is_internal(&self) -> bool {
        self.status().is_some_and(Status::is_internal)
    }

    /// Returns whether the server does not have the resource or the object: 404.
    pub fn is_not_found(&self) -> bool {
        self.status().is_some_and(|status| status.is("NotFound", 404))
    }

    /// Returns whether the host has no permission for the request: 403.
    pub fn is_forbidden(&self) -> bool {
        self.status().is_some_and(|status| status.is("Forbidden", 403))
    }

    /// Returns the wait before the next request that the server asks for, if any.
    pub fn retry_after(&self) -> Option<Duration> {
        self.status().and_then(|status| status.retry_after)
    }

    /// Returns the server's status, if the server answered.
    pub fn status(&self) -> Option<&Status> {
        match self {
            Self::Status(status) => Some(status),
            Self::Transport(_) | Self::Decode(_) => None,
        }
    }
}

// === impl Status ===

impl Status {
    /// See [`ApiError::is_expired`].
    pub fn is_expired(&self) -> bool {
        self.reason == "Expired" || self.is("Gone", 410)
    }

    /// See [`ApiError::is_too_large_rv`].
    pub fn is_too_large_rv(&self) -> bool {
        const TEXT: &str = "Too large resource version";
        if self.causes.iter().any(|cause| cause.reason == "ResourceVersionTooLarge") {
            return true;
        }
        let is_timeout = self.is("Timeout", 504);
        is_timeout && (self.causes.iter().any(|cause| cause.message == TEXT) || self.message.contains(TEXT))
    }

    /// Returns whether the server asks for fewer requests, by reason or by code.
    pub fn is_too_many_requests(&self) -> bool {
        self.reason == "TooManyRequests" || self.code == 429
    }

    /// Returns whether the server may ask to repeat the request: 429 and all failures of the server itself,
    /// save a version that it does not have yet.
    pub fn asks_to_retry(&self) -> bool {
        (self.is_too_many_requests() || self.code >= 500) && !self.is_too_large_rv()
    }

    /// See [`ApiError::is_internal`].
    pub fn is_internal(&self) -> bool {
        self.is("InternalError", 500)
    }

    /// Returns whether the failure has this reason or, with an unknown reason, this code.
    fn is(&self, reason: &str, code: u16) -> bool {
        self.reason == reason || (self.code == code && !KNOWN_REASONS.contains(&&*self.reason))
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&*self.message, &*self.reason) {
            ("", "") => write!(f, "the API server answered {}", self.code),
            ("", reason) => write!(f, "the API server answered {} {reason}", self.code),
            (message, "") => write!(f, "{message} ({})", self.code),
            (message, reason) => write!(f, "{message} ({} {reason})", self.code),
        }
    }
}

impl StdError for Status {}

/// The reasons of `apimachinery`. A code counts only with a reason that is not one of these.
const KNOWN_REASONS: &[&str] = &[
    "AlreadyExists",
    "BadRequest",
    "Conflict",
    "Expired",
    "Forbidden",
    "Gone",
    "InternalError",
    "Invalid",
    "MethodNotAllowed",
    "NotAcceptable",
    "NotFound",
    "RequestEntityTooLarge",
    "ServerTimeout",
    "ServiceUnavailable",
    "StoreReadError",
    "Timeout",
    "TooManyRequests",
    "Unauthorized",
    "UnsupportedMediaType",
];

/// Returns whether a refused TCP connection is among the causes.
fn is_connection_refused(error: &(dyn StdError + 'static)) -> bool {
    let mut next = Some(error);
    while let Some(error) = next {
        match error.downcast_ref::<io::Error>() {
            Some(error) if error.kind() == io::ErrorKind::ConnectionRefused => return true,
            // `source` of an I/O error that wraps another error skips that error.
            Some(error) if error.get_ref().is_some() => next = error.get_ref().map(|inner| inner as _),
            _ => next = error.source(),
        }
    }
    false
}

//! What can go wrong in a request, and the classes by which a reflector decides what to do (RL-30 to RL-33).

use std::error::Error as StdError;
use std::fmt;
use std::io;
use std::time::Duration;

use crate::object;

/// Why a list or a watch failed.
#[derive(Debug, thiserror::Error)]
pub enum ApiError {
    /// The server answered, and the answer is no.
    #[error(transparent)]
    Status(#[from] Status),
    /// There was no answer, or not all of it.
    #[error("cannot talk to the API server")]
    Transport(#[source] Box<dyn StdError + Send + Sync>),
    /// The answer cannot be read.
    #[error("cannot read the API server's answer")]
    Decode(#[from] DecodeError),
}

/// The API server's own account of a failure (`metav1.Status`), or what an HTTP answer without one amounts to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Status {
    /// HTTP status code.
    pub code: u16,
    /// One word for a machine, such as `Expired`; empty if the server does not say.
    pub reason: String,
    /// What happened, for people.
    pub message: String,
    /// What led to it, in parts.
    pub causes: Vec<Cause>,
    /// How long the server asks to wait before the next try.
    pub retry_after: Option<Duration>,
}

/// One of the causes in a [`Status`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cause {
    /// One word for a machine (`reason` in the JSON, the cause's type in Go).
    pub reason: String,
    /// What happened, for people.
    pub message: String,
}

/// What makes an answer unreadable.
#[derive(Debug, thiserror::Error)]
pub enum DecodeError {
    /// It is not JSON, or not of the expected shape.
    #[error("malformed {what}")]
    Malformed {
        /// What it was to be.
        what: &'static str,
        /// Where it broke.
        #[source]
        source: serde_json::Error,
    },
    /// It is not UTF-8.
    #[error("{what} is not UTF-8")]
    NotUtf8 {
        /// What it was to be.
        what: &'static str,
        /// Where it broke.
        #[source]
        source: std::str::Utf8Error,
    },
    /// One object in it cannot be taken in.
    #[error("bad object in the answer")]
    Object(#[from] object::Error),
    /// It is longer than this host is ready to hold.
    #[error("{what} is longer than {limit} bytes")]
    TooLong {
        /// What it was to be.
        what: &'static str,
        /// The limit.
        limit: usize,
    },
    /// It has no resourceVersion.
    #[error("{0} without a resourceVersion")]
    NoVersion(&'static str),
    /// A list came as a table for people to read (RL-26).
    #[error("unsupported list gvk: {0}")]
    UnsupportedList(String),
}

/// The connection broke, or was silent for too long, before there was an answer. So nothing is known of what the server would have said.
#[derive(Debug, thiserror::Error)]
#[error("no answer came")]
pub struct Unanswered(#[source] pub Box<dyn StdError + Send + Sync>);

// === impl ApiError ===

impl ApiError {
    /// Whether the version asked for is too old: reason `Expired` or `Gone`, or code 410 with an unknown reason (RL-30).
    pub fn is_expired(&self) -> bool {
        self.status().is_some_and(Status::is_expired)
    }

    /// Whether the version asked for is newer than any the server knows (RL-31).
    pub fn is_too_large_rv(&self) -> bool {
        self.status().is_some_and(Status::is_too_large_rv)
    }

    /// Whether the same request may be made again after a while: connection refused, or 429 (RL-32).
    pub fn is_retriable_in_place(&self) -> bool {
        match self {
            Self::Status(status) => status.is_too_many_requests(),
            Self::Transport(source) => is_connection_refused(&**source),
            Self::Decode(_) => false,
        }
    }

    /// Whether the way to the server broke before it answered, as far as the source says so: see [`Unanswered`].
    pub fn is_unanswered(&self) -> bool {
        matches!(self, Self::Transport(source) if source.is::<Unanswered>())
    }

    /// Whether the server failed inside: reason `InternalError`, or code 500 with an unknown reason (RL-33).
    pub fn is_internal(&self) -> bool {
        self.status().is_some_and(Status::is_internal)
    }

    /// Whether the resource (or the namespace's part of it) is not there: 404.
    pub fn is_not_found(&self) -> bool {
        self.status().is_some_and(|status| status.is("NotFound", 404))
    }

    /// Whether the host may not ask for this: 403.
    pub fn is_forbidden(&self) -> bool {
        self.status().is_some_and(|status| status.is("Forbidden", 403))
    }

    /// Returns how long the server asks to wait before the next try.
    pub fn retry_after(&self) -> Option<Duration> {
        self.status().and_then(|status| status.retry_after)
    }

    /// Returns the server's own account, if it gave one.
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

    /// Whether the server asks to slow down, by reason or by code.
    pub fn is_too_many_requests(&self) -> bool {
        self.reason == "TooManyRequests" || self.code == 429
    }

    /// Whether the server has no time at the moment and may say when to come back: 429, or any failure of its own, but for a version that it does
    /// not have, against which no waiting helps.
    pub fn asks_to_retry(&self) -> bool {
        (self.is_too_many_requests() || self.code >= 500) && !self.is_too_large_rv()
    }

    /// See [`ApiError::is_internal`].
    pub fn is_internal(&self) -> bool {
        self.is("InternalError", 500)
    }

    /// Whether this is the failure of that reason, by its name or, where the server's reason says nothing, by its code.
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

/// The reasons that `apimachinery` knows. A code counts only beside a reason that is none of these.
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

/// Whether anywhere down the chain of causes stands a refused TCP connection.
fn is_connection_refused(error: &(dyn StdError + 'static)) -> bool {
    let mut next = Some(error);
    while let Some(error) = next {
        match error.downcast_ref::<io::Error>() {
            Some(error) if error.kind() == io::ErrorKind::ConnectionRefused => return true,
            // An I/O error that wraps another shows that one's source, not that one.
            Some(error) if error.get_ref().is_some() => next = error.get_ref().map(|inner| inner as _),
            _ => next = error.source(),
        }
    }
    false
}

//! Why a component could not be fetched.

use std::{fmt, io};

/// Why a component could not be fetched. Displays as one sentence without a full stop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    reason: Reason,
    message: String,
    hint: Option<&'static str>,
}

/// The kind of an [`Error`]: what a caller decides on, and the `reason` of a condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Reason {
    /// The source is not well-formed.
    Invalid,
    /// The policy of the host does not allow the source.
    NotAllowed,
    /// The artifact, file, object or key does not exist.
    NotFound,
    /// The registry refuses the credentials, or the account may not read the object.
    Forbidden,
    /// The registry, server or API server cannot be asked now, or answers with nonsense.
    Unavailable,
    /// The component is larger than the policy allows.
    TooLarge,
    /// The bytes do not have the digest that the source or the registry says.
    DigestMismatch,
    /// The content is not a WebAssembly component.
    NotAComponent,
    /// The policy requires a signature, and no valid one was found.
    NotSigned,
    /// The cache cannot be written or read.
    Cache,
}

// === impl Error ===

impl Error {
    pub(crate) fn new(reason: Reason, message: impl Into<String>) -> Self {
        Self { reason, message: message.into(), hint: None }
    }

    #[must_use]
    pub(crate) fn hint(self, hint: &'static str) -> Self {
        Self { hint: Some(hint), ..self }
    }

    /// Returns the error of a read or write in the cache.
    pub(crate) fn cache(what: impl fmt::Display, error: &io::Error) -> Self {
        let this = Self::new(Reason::Cache, format!("{what}: {error}"));
        if matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded) {
            return this.hint("free space on the disk of the cache; what serves goes on serving");
        }
        this.hint("check the folder of the cache and its disk; what serves goes on serving")
    }

    /// Adds a context in front of the message.
    #[must_use]
    pub(crate) fn context(self, context: impl fmt::Display) -> Self {
        Self { message: format!("{context}: {}", self.message), ..self }
    }

    /// Adds a text of another party at the end of the message.
    #[must_use]
    pub(crate) fn followed_by(self, text: &str) -> Self {
        Self { message: format!("{}: {text}", self.message), ..self }
    }

    /// Returns the kind of the error.
    #[must_use]
    pub fn reason(&self) -> Reason {
        self.reason
    }

    /// Returns what to do about it, if the message does not say it.
    #[must_use]
    pub fn fix(&self) -> Option<&'static str> {
        self.hint
    }

    /// Returns whether a later try may succeed without a change of the source or of the policy.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        match self.reason {
            Reason::Unavailable
            | Reason::Cache
            | Reason::NotFound
            | Reason::Forbidden
            | Reason::NotSigned => true,
            Reason::Invalid
            | Reason::NotAllowed
            | Reason::TooLarge
            | Reason::DigestMismatch
            | Reason::NotAComponent => false,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}

// === impl Reason ===

impl Reason {
    /// Returns the name, in the form of a condition's `reason`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Invalid => "InvalidSource",
            Self::NotAllowed => "NotAllowed",
            Self::NotFound => "NotFound",
            Self::Forbidden => "Forbidden",
            Self::Unavailable => "Unavailable",
            Self::TooLarge => "TooLarge",
            Self::DigestMismatch => "DigestMismatch",
            Self::NotAComponent => "NotAComponent",
            Self::NotSigned => "NotSigned",
            Self::Cache => "CacheFailed",
        }
    }
}

//! How a round of list and watch ends, and who is told.

use std::error::Error as StdError;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use super::{Phase, StoreError};
use crate::list_watch::{ApiError, DecodeError};

/// Why a round of list and watch failed. After a while there is another.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The list failed (RL-27).
    #[error("failed to list {what}")]
    List {
        /// What was listed.
        what: String,
        /// How it failed.
        source: ApiError,
    },
    /// The store did not take the list (RL-25).
    #[error("unable to sync list result")]
    Replace(#[source] StoreError),
    /// The watch could not be begun (RL-41).
    #[error("failed to watch {what}")]
    Watch {
        /// What was to be watched.
        what: String,
        /// How it failed.
        source: ApiError,
    },
}

/// Why one round of list and watch ended. Only the first is an error; behind the others a new list is all that is needed.
#[derive(Debug, thiserror::Error)]
pub(super) enum Ended {
    #[error(transparent)]
    Failed(#[from] Error),
    /// Nothing is wrong, but the watch cannot go on from its version.
    #[error("the watch's version has expired")]
    Expired,
    #[error("failed to watch {what}")]
    Broken { what: String, source: ApiError },
    /// What the store has of the object is not what the server has, which only a list can tell.
    #[error("failed to watch {what}: an event of {name} cannot be decoded, everything is listed again")]
    Undecodable { what: String, name: String, source: Arc<DecodeError> },
    #[error("very short watch: it ended within a second and brought nothing")]
    VeryShortWatch,
    #[error("failed to resync")]
    Resync(#[source] StoreError),
}

// === impl Error ===

impl Error {
    /// Returns what the API server or the way to it has to do with it.
    pub fn api_error(&self) -> Option<&ApiError> {
        match self {
            Self::List { source, .. } | Self::Watch { source, .. } => Some(source),
            Self::Replace(_) => None,
        }
    }

    /// Does what is done about an error where nobody else wants to know (RL-11).
    pub(super) fn log(&self) {
        let message = in_full(self);
        match self.api_error() {
            // The world as it is: the next list will do.
            Some(error) if error.is_expired() => tracing::debug!("{message}"),
            Some(error) if is_eof(error) => tracing::debug!("{message}"),
            // A state, not a failure (RL-72).
            Some(error) if error.is_not_found() => tracing::warn!("{message}"),
            _ => tracing::error!("{message}"),
        }
    }
}

// === impl Ended ===

impl Ended {
    pub(super) fn retry_after(&self) -> Option<Duration> {
        self.api_error().and_then(ApiError::retry_after)
    }

    /// Returns what it amounts to; nothing if nothing is wrong.
    pub(super) fn phase(&self) -> Option<Phase> {
        match self.api_error() {
            Some(error) if error.is_not_found() => Some(Phase::Absent),
            Some(error) if error.is_forbidden() => Some(Phase::Forbidden),
            _ if matches!(self, Self::Expired) => None,
            _ => Some(Phase::Failing { message: in_full(self) }),
        }
    }

    fn api_error(&self) -> Option<&ApiError> {
        match self {
            Self::Failed(error) => error.api_error(),
            Self::Broken { source, .. } => Some(source),
            Self::Expired | Self::Undecodable { .. } | Self::VeryShortWatch | Self::Resync(_) => None,
        }
    }
}

/// Whether the connection just ended.
fn is_eof(error: &ApiError) -> bool {
    let mut next = match error {
        ApiError::Transport(source) => Some(&**source as &(dyn StdError + 'static)),
        ApiError::Status(_) | ApiError::Decode(_) => None,
    };
    while let Some(error) = next {
        if error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::UnexpectedEof)
        {
            return true;
        }
        next = error.source();
    }
    false
}

/// Returns an error's text with its causes behind it.
pub(super) fn in_full(error: &dyn StdError) -> String {
    let mut message = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        let text = error.to_string();
        if !message.ends_with(&text) {
            message.push_str(": ");
            message.push_str(&text);
        }
        source = error.source();
    }
    message
}

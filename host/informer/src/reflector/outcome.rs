//! The outcome of a step of the reflector that did not succeed: the error, its report and the next state.

use std::error::Error as StdError;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use super::state::State;
use super::{Phase, StoreError};
use crate::list_watch::{ApiError, DecodeError};

/// Why a list or a watch ended.
///
/// A [`WatchErrorHandler`](super::WatchErrorHandler) receives [`Error::List`], [`Error::Watch`] and
/// [`Error::Replace`] (RL-10). The other errors are in the log and in the status.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The list failed (RL-27).
    #[error("failed to list {what}")]
    List {
        /// The resource.
        what: String,
        /// The cause.
        source: ApiError,
    },
    /// The store rejected the list (RL-25).
    #[error("unable to sync list result")]
    Replace(#[source] StoreError),
    /// The watch could not begin (RL-41).
    #[error("failed to watch {what}")]
    Watch {
        /// The resource.
        what: String,
        /// The cause.
        source: ApiError,
    },
    /// The server ended the watch with an error, or sent an event that cannot be decoded (RL-44).
    #[error("failed to watch {what}")]
    Ended {
        /// The resource.
        what: String,
        /// The cause.
        source: ApiError,
    },
    /// An event has an object that cannot be decoded. The store's state of this object is out of date, and
    /// only a list has the new one.
    #[error(
        "failed to watch {what}: an event of {object} cannot be decoded, so all objects are listed again"
    )]
    Undecodable {
        /// The resource.
        what: String,
        /// The object.
        object: String,
        /// The cause.
        source: Arc<DecodeError>,
    },
    /// The watch ended without an error (RL-42).
    #[error("the server closed the watch after {lasted:?}")]
    Closed {
        /// The time since the request.
        lasted: Duration,
    },
    /// The watch ended within a second, without an event (RL-42).
    #[error("very short watch: the server closed it within a second and without an event")]
    VeryShortWatch,
    /// Several watches in a row ended before the end of the initial events (WL-06).
    #[error("the server closed {n_watches} watches before the end of the initial events")]
    ClosedTooEarly {
        /// The number of watches.
        n_watches: u32,
    },
    /// The watch had no event and no bookmark for too long (RL-70).
    #[error("no event and no bookmark on the watch for {limit:?}")]
    Silent {
        /// The limit.
        limit: Duration,
    },
    /// The store failed to resync (RL-46).
    #[error("failed to resync")]
    Resync(#[source] StoreError),
}

/// The outcome of a step that did not succeed. Its fields decide what happens next.
pub(super) struct Outcome {
    pub(super) error: Error,
    pub(super) report: Report,
    /// The new phase of the status, which then also shows the error. None: the status stays.
    pub(super) phase: Option<Phase>,
    pub(super) wait: Wait,
    /// The next state, after the wait.
    pub(super) next: State,
}

/// Where an error is reported.
pub(super) enum Report {
    /// To the watch-error handler, or else to the log (RL-10, RL-11).
    Handler,
    /// To the log, as a warning.
    Warning,
    /// To the log, at debug level.
    Debug,
}

/// The wait before the next state.
pub(super) enum Wait {
    /// No wait.
    None,
    /// The next step of the back-off, or longer if the server asks for it (RL-04).
    BackOff,
    /// The first step of a new back-off.
    FirstBackOff,
}

// === impl Error ===

impl Error {
    /// Returns the API server's or the connection's error, if it is the cause.
    pub fn api_error(&self) -> Option<&ApiError> {
        match self {
            Self::List { source, .. } | Self::Watch { source, .. } | Self::Ended { source, .. } => {
                Some(source)
            }
            Self::Replace(_)
            | Self::Undecodable { .. }
            | Self::Closed { .. }
            | Self::VeryShortWatch
            | Self::ClosedTooEarly { .. }
            | Self::Silent { .. }
            | Self::Resync(_) => None,
        }
    }

    /// Returns the wait before the next request that the server asks for, if any.
    pub(super) fn retry_after(&self) -> Option<Duration> {
        self.api_error().and_then(ApiError::retry_after)
    }

    /// Logs the error, where no watch-error handler is set (RL-11).
    pub(super) fn log(&self) {
        let message = in_full(self);
        match self.api_error() {
            // Normal: the next list succeeds.
            Some(error) if error.is_expired() => tracing::debug!("{message}"),
            Some(error) if is_eof(error) => tracing::debug!("{message}"),
            // A state, not a failure (RL-72).
            Some(error) if error.is_not_found() => tracing::warn!("{message}"),
            _ => tracing::error!("{message}"),
        }
    }

    fn phase(&self) -> Phase {
        match self.api_error() {
            Some(error) if error.is_not_found() => Phase::Absent,
            Some(error) if error.is_forbidden() => Phase::Forbidden,
            _ => Phase::Failing { message: in_full(self) },
        }
    }
}

// === impl Outcome ===

impl Outcome {
    /// A failure of client-go's `ListAndWatch`: handler or log, status, back-off, then a new list (RL-10).
    pub(super) fn failed(error: Error) -> Self {
        let phase = Some(error.phase());
        Self { error, report: Report::Handler, phase, wait: Wait::BackOff, next: State::InitialList }
    }

    /// A watch that cannot continue: warning, status, back-off, then a new list (RL-44).
    pub(super) fn relist(error: Error) -> Self {
        Self { report: Report::Warning, ..Self::failed(error) }
    }

    /// A watch whose version has expired, which is normal: only back-off, then a new list (RL-44).
    pub(super) fn expired(error: Error) -> Self {
        Self { report: Report::Debug, phase: None, ..Self::failed(error) }
    }

    /// A request that the reflector repeats: status and back-off, then the same again (RL-41).
    pub(super) fn retry(error: Error, next: State) -> Self {
        Self { report: Report::Debug, next, ..Self::failed(error) }
    }

    /// A watch that was silent for too long: warning and status, then `next` at once (RL-70).
    pub(super) fn silent(error: Error, next: State) -> Self {
        Self { report: Report::Warning, wait: Wait::None, next, ..Self::failed(error) }
    }

    /// An end that is no failure: `next` at once.
    pub(super) fn resume(error: Error, next: State) -> Self {
        Self { error, report: Report::Debug, phase: None, wait: Wait::None, next }
    }

    /// An end that is no failure: `next` after the first step of a new back-off.
    pub(super) fn resume_later(error: Error, next: State) -> Self {
        Self { wait: Wait::FirstBackOff, ..Self::resume(error, next) }
    }
}

/// Returns whether the connection ended in the middle of the answer.
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

/// Returns the text of an error followed by the texts of its causes.
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

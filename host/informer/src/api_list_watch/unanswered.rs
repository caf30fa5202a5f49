//! Which failures of a request leave open what the server would have said.

use std::error::Error as StdError;
use std::io;

use hyper_util::client::legacy;

use crate::list_watch::{ApiError, Unanswered};

/// Makes an error of a request that failed before its answer.
pub(super) fn classify(error: kube::Error) -> ApiError {
    if is_broken(&error) { unanswered(error.into()) } else { ApiError::Transport(error.into()) }
}

/// Makes an error of a request whose answer took too long.
pub(super) fn timed_out(error: ApiError) -> ApiError {
    match error {
        ApiError::Transport(source) => unanswered(source),
        other => other,
    }
}

fn unanswered(source: Box<dyn StdError + Send + Sync>) -> ApiError {
    ApiError::Transport(Unanswered(source).into())
}

/// Whether a connection was there and broke, be it while it was being made. Nobody who listens, no such host and no trust are other
/// things: they do not pass in a second.
fn is_broken(error: &(dyn StdError + 'static)) -> bool {
    let mut next = Some(error);
    while let Some(error) = next {
        if error.downcast_ref::<legacy::Error>().is_some_and(|error| !error.is_connect()) {
            return true;
        }
        match error.downcast_ref::<io::Error>() {
            Some(error) if is_break(error.kind()) => return true,
            // An I/O error that wraps another shows that one's source, not that one.
            Some(error) if error.get_ref().is_some() => next = error.get_ref().map(|inner| inner as _),
            _ => next = error.source(),
        }
    }
    false
}

fn is_break(kind: io::ErrorKind) -> bool {
    use io::ErrorKind;
    matches!(
        kind,
        ErrorKind::ConnectionReset
            | ErrorKind::ConnectionAborted
            | ErrorKind::BrokenPipe
            | ErrorKind::UnexpectedEof
            | ErrorKind::TimedOut
    )
}

//! The API server's answer to a request: its body, and the errors of failures.

use std::error::Error as StdError;
use std::io;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, header};
use http_body_util::BodyExt;
use hyper_util::client::legacy;
use kube::client::Body;
use serde::Deserialize;

use crate::list_watch::{ApiError, Cause, Status, Unanswered};

/// The most bytes of a failure's body that are read; no status is longer.
const MAX_STATUS_BYTES: usize = 256 << 10;

/// The most characters of a body that are quoted if it is not a status.
const MAX_QUOTE: usize = 300;

/// Reads a body chunk by chunk. Trailers are skipped.
pub(super) struct Chunks(Body);

#[derive(Deserialize)]
struct StatusJson {
    code: Option<u16>,
    reason: Option<String>,
    message: Option<String>,
    details: Option<Details>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Details {
    causes: Option<Vec<CauseJson>>,
    retry_after_seconds: Option<u64>,
}

#[derive(Deserialize)]
struct CauseJson {
    reason: Option<String>,
    message: Option<String>,
}

// === impl Chunks ===

impl Chunks {
    pub(super) fn new(body: Body) -> Self {
        Self(body)
    }

    /// Returns the next chunk; none at the end. Cancel-safe.
    pub(super) async fn next(&mut self) -> Option<Result<Bytes, ApiError>> {
        loop {
            match self.0.frame().await? {
                Ok(frame) => match frame.into_data() {
                    Ok(data) => return Some(Ok(data)),
                    Err(_trailers) => {}
                },
                Err(error) => return Some(Err(ApiError::Transport(error.into()))),
            }
        }
    }
}

/// Reads the body of a failure, up to the length of any status.
pub(super) async fn read_status(body: Body) -> Result<Vec<u8>, ApiError> {
    let mut chunks = Chunks::new(body);
    let mut text = Vec::new();
    while let Some(chunk) = chunks.next().await {
        text.extend_from_slice(&chunk?);
        if text.len() > MAX_STATUS_BYTES {
            break;
        }
    }
    Ok(text)
}

/// Returns the status of a failure; its body need not contain one.
pub(super) fn status_of(code: u16, headers: &HeaderMap, body: &[u8]) -> Status {
    let text = String::from_utf8_lossy(body);
    let mut status = match parse_status(&text) {
        Ok(status) if status.code == code => status,
        _ => Status { code, message: quote(&text), ..Status::default() },
    };
    let retry_after = headers.get(header::RETRY_AFTER).and_then(|value| value.to_str().ok());
    if let Some(seconds) = retry_after.and_then(|text| text.trim().parse().ok()) {
        status.retry_after = Some(Duration::from_secs(seconds));
    }
    status
}

/// Parses a `metav1.Status`.
pub(super) fn parse_status(text: &str) -> Result<Status, serde_json::Error> {
    let StatusJson { code, reason, message, details } = serde_json::from_str(text)?;
    let (causes, retry_after_seconds) = match details {
        Some(details) => (details.causes.unwrap_or_default(), details.retry_after_seconds),
        None => (Vec::new(), None),
    };
    let cause = |CauseJson { reason, message }: CauseJson| Cause {
        reason: reason.unwrap_or_default(),
        message: message.unwrap_or_default(),
    };
    Ok(Status {
        code: code.unwrap_or_default(),
        reason: reason.unwrap_or_default(),
        message: message.unwrap_or_default(),
        causes: causes.into_iter().map(cause).collect(),
        retry_after: retry_after_seconds.filter(|seconds| *seconds > 0).map(Duration::from_secs),
    })
}

/// Returns the error of a request that failed before its answer.
pub(super) fn request_error(error: kube::Error) -> ApiError {
    if is_broken_connection(&error) { unanswered(error.into()) } else { ApiError::Transport(error.into()) }
}

/// Returns the error of a request whose answer did not begin in time.
pub(super) fn answer_timeout(error: ApiError) -> ApiError {
    match error {
        ApiError::Transport(source) => unanswered(source),
        other => other,
    }
}

fn unanswered(source: Box<dyn StdError + Send + Sync>) -> ApiError {
    ApiError::Transport(Unanswered(source).into())
}

/// Returns whether an existing connection broke, or one broke while it was being made. A refused connection,
/// an unknown host and an untrusted certificate are other errors, since they do not pass within a second.
fn is_broken_connection(error: &(dyn StdError + 'static)) -> bool {
    let mut next = Some(error);
    while let Some(error) = next {
        if error.downcast_ref::<legacy::Error>().is_some_and(|error| !error.is_connect()) {
            return true;
        }
        match error.downcast_ref::<io::Error>() {
            Some(error) if is_break(error.kind()) => return true,
            // `source` of an I/O error that wraps another error skips that error.
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

fn quote(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(MAX_QUOTE) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

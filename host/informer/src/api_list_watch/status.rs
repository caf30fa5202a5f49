//! The API server's account of a failure, from an answer or from a watch.

use std::time::Duration;

use http::{HeaderMap, header};
use kube::client::Body;
use serde::Deserialize;

use super::body::Chunks;
use crate::list_watch::{ApiError, Cause, Status};

/// No status is longer; what is behind is not read.
const MAX_BYTES: usize = 256 << 10;

/// So much of an answer that is no status is quoted.
const MAX_QUOTE: usize = 300;

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

/// Reads the body of a failure's answer, as far as anyone needs it.
pub(super) async fn read(body: Body) -> Result<Vec<u8>, ApiError> {
    let mut chunks = Chunks::new(body);
    let mut text = Vec::new();
    while let Some(chunk) = chunks.next().await {
        text.extend_from_slice(&chunk?);
        if text.len() > MAX_BYTES {
            break;
        }
    }
    Ok(text)
}

/// Makes a status of an answer, which need not have one in it.
pub(super) fn from_answer(code: u16, headers: &HeaderMap, body: &[u8]) -> Status {
    let text = String::from_utf8_lossy(body);
    let mut status = match parse(&text) {
        Ok(status) if status.code == code => status,
        _ => Status { code, message: quote(&text), ..Status::default() },
    };
    let retry_after = headers.get(header::RETRY_AFTER).and_then(|value| value.to_str().ok());
    if let Some(seconds) = retry_after.and_then(|text| text.trim().parse().ok()) {
        status.retry_after = Some(Duration::from_secs(seconds));
    }
    status
}

/// Reads a `metav1.Status`.
pub(super) fn parse(text: &str) -> Result<Status, serde_json::Error> {
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

fn quote(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(MAX_QUOTE) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

//! Answers, read with a bound for their length and for the time without a byte.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, StatusCode, header};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use tokio::time::timeout;
use url::Url;

use super::host;
use crate::error::{Error, Reason};

/// How long an answer may stay without a further byte.
const STALLED: Duration = Duration::from_secs(30);

/// An answer, whose body was not read yet.
pub(crate) struct Response {
    /// The URL that answered, after redirects.
    pub(crate) url: Url,
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    body: Incoming,
}

// === impl Response ===

impl Response {
    pub(super) fn new(url: Url, response: http::Response<Incoming>) -> Self {
        let (parts, body) = response.into_parts();
        Self { url, status: parts.status, headers: parts.headers, body }
    }

    /// Returns a header, if it is text.
    pub(crate) fn header(&self, name: impl header::AsHeaderName) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// Returns the length that the server announces.
    pub(crate) fn announced_bytes(&self) -> Option<u64> {
        self.header(header::CONTENT_LENGTH)?.parse().ok()
    }

    /// Returns whether the content is a page for people.
    pub(crate) fn is_page(&self) -> bool {
        self.header(header::CONTENT_TYPE).is_some_and(|it| it.starts_with("text/html"))
    }

    /// Returns the next bytes; none at the end.
    pub(crate) async fn chunk(&mut self) -> Result<Option<Bytes>, Error> {
        loop {
            let failed = |message: String| {
                Error::new(Reason::Unavailable, format!("{}: {message}", host(&self.url)))
                    .hint("check the registry or server; the host tries again")
            };
            match timeout(STALLED, self.body.frame()).await {
                Err(_) => return Err(failed(format!("no byte came within {} s", STALLED.as_secs()))),
                Ok(None) => return Ok(None),
                Ok(Some(Err(error))) => return Err(failed(format!("the answer ends early: {error}"))),
                Ok(Some(Ok(frame))) => {
                    if let Ok(data) = frame.into_data() {
                        return Ok(Some(data));
                    }
                }
            }
        }
    }

    /// Returns the whole content, of at most this many bytes.
    pub(crate) async fn bytes(&mut self, max_bytes: usize) -> Result<Vec<u8>, Error> {
        let mut bytes = Vec::new();
        while let Some(chunk) = self.chunk().await? {
            if bytes.len() + chunk.len() > max_bytes {
                let message = format!("{} answers with more than {max_bytes} bytes", host(&self.url));
                return Err(Error::new(Reason::Unavailable, message)
                    .hint("check that the reference names an artifact of a registry"));
            }
            bytes.extend_from_slice(&chunk);
        }
        Ok(bytes)
    }
}

//! The data of an answer's body, chunk by chunk.

use bytes::Bytes;
use http_body_util::BodyExt;
use kube::client::Body;

use crate::list_watch::ApiError;

/// Reads a body. Trailers are passed over.
pub(super) struct Chunks(Body);

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

//! Cuts a watch's body into frames: one event a line.

use bytes::{Buf, Bytes, BytesMut};

use super::body::Chunks;
use crate::list_watch::{ApiError, DecodeError};

/// Reads lines, however the chunks fall.
pub(super) struct Lines {
    chunks: Chunks,
    buffer: BytesMut,
    /// So much of the buffer was looked through for a newline.
    n_searched: usize,
    max_bytes: usize,
}

/// One frame, and whether its newline came.
pub(super) struct Line {
    pub(super) bytes: Bytes,
    pub(super) is_whole: bool,
}

// === impl Lines ===

impl Lines {
    pub(super) fn new(chunks: Chunks, max_bytes: usize) -> Self {
        Self { chunks, buffer: BytesMut::new(), n_searched: 0, max_bytes }
    }

    /// Returns the next line that is not blank; none at the end. Cancel-safe.
    pub(super) async fn next(&mut self) -> Option<Result<Line, ApiError>> {
        loop {
            if let Some(bytes) = self.take_line() {
                if bytes.trim_ascii().is_empty() {
                    continue;
                }
                return Some(self.checked(Line { bytes, is_whole: true }));
            }
            if self.buffer.len() > self.max_bytes {
                return Some(Err(self.too_long()));
            }
            match self.chunks.next().await {
                Some(Ok(chunk)) => self.buffer.extend_from_slice(&chunk),
                Some(Err(error)) => return Some(Err(error)),
                None => {
                    let bytes = self.buffer.split().freeze();
                    self.n_searched = 0;
                    let is_blank = bytes.trim_ascii().is_empty();
                    return if is_blank { None } else { Some(self.checked(Line { bytes, is_whole: false })) };
                }
            }
        }
    }

    fn take_line(&mut self) -> Option<Bytes> {
        let unsearched = &self.buffer[self.n_searched..];
        let Some(newline) = unsearched.iter().position(|byte| *byte == b'\n') else {
            self.n_searched = self.buffer.len();
            return None;
        };
        let line = self.buffer.split_to(self.n_searched + newline).freeze();
        self.buffer.advance(1);
        self.n_searched = 0;
        Some(line)
    }

    fn checked(&self, line: Line) -> Result<Line, ApiError> {
        if line.bytes.len() > self.max_bytes { Err(self.too_long()) } else { Ok(line) }
    }

    fn too_long(&self) -> ApiError {
        DecodeError::TooLong { what: "watch event", limit: self.max_bytes }.into()
    }
}

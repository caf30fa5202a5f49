//! Splits the body of a watch into lines, one event each.
//!
//! A line within one chunk is a slice of the chunk; only a line across chunks is copied.

use std::mem;

use bytes::{Buf, Bytes, BytesMut};
use memchr::memchr;

use super::answer::Chunks;
use crate::list_watch::{ApiError, DecodeError};

/// Reads lines from chunks of any size.
pub(super) struct Lines {
    chunks: Chunks,
    /// The beginning of a line whose newline has not arrived.
    begun: BytesMut,
    /// The rest of the last chunk, not yet searched for a newline.
    chunk: Bytes,
    max_bytes: usize,
}

/// A line without its newline.
pub(super) struct Line {
    pub(super) bytes: Bytes,
    /// Whether the newline has arrived.
    pub(super) is_whole: bool,
}

// === impl Lines ===

impl Lines {
    pub(super) fn new(chunks: Chunks, max_bytes: usize) -> Self {
        Self { chunks, begun: BytesMut::new(), chunk: Bytes::new(), max_bytes }
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
            if self.begun.len() > self.max_bytes {
                return Some(Err(self.too_long()));
            }
            match self.chunks.next().await {
                Some(Ok(chunk)) => self.chunk = chunk,
                Some(Err(error)) => return Some(Err(error)),
                None => {
                    let bytes = mem::take(&mut self.begun).freeze();
                    let is_blank = bytes.trim_ascii().is_empty();
                    return if is_blank { None } else { Some(self.checked(Line { bytes, is_whole: false })) };
                }
            }
        }
    }

    /// Returns the next line whose newline has arrived. If there is none, moves the chunk into `begun`.
    fn take_line(&mut self) -> Option<Bytes> {
        let Some(newline) = memchr(b'\n', &self.chunk) else {
            self.begun.extend_from_slice(&mem::take(&mut self.chunk));
            return None;
        };
        let line = self.chunk.split_to(newline);
        self.chunk.advance(1);
        if self.begun.is_empty() {
            return Some(line);
        }
        self.begun.extend_from_slice(&line);
        Some(self.begun.split().freeze())
    }

    fn checked(&self, line: Line) -> Result<Line, ApiError> {
        if line.bytes.len() > self.max_bytes { Err(self.too_long()) } else { Ok(line) }
    }

    fn too_long(&self) -> ApiError {
        DecodeError::TooLong { what: "watch event", limit: self.max_bytes }.into()
    }
}

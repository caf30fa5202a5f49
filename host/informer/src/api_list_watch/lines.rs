//! Cuts a watch's body into frames: one event a line.
//!
//! A line that came whole in one chunk is a slice of it; only what was cut is put together.

use std::mem;

use bytes::{Buf, Bytes, BytesMut};
use memchr::memchr;

use super::body::Chunks;
use crate::list_watch::{ApiError, DecodeError};

/// Reads lines, however the chunks fall.
pub(super) struct Lines {
    chunks: Chunks,
    /// The beginning of a line, without its newline.
    begun: BytesMut,
    /// What came behind it, and was not looked through.
    chunk: Bytes,
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

    /// Returns the line whose newline has come. If there is none, the chunk has become part of what is begun.
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

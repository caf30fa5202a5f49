//! A guest's stdout or stderr, line by line into the plugin's log.

use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::io::AsyncWrite;
use wasmtime_wasi::{
    async_trait,
    cli::{IsTerminal, StdoutStream},
    p2::{OutputStream, Pollable, StreamResult},
};

use crate::{GuestLog, contract::Level, guest_log::MAX_MESSAGE_BYTES};

/// Bytes that a guest may write at a time.
const PERMIT: usize = 64 << 10;

/// One of the two; clones write the same lines.
#[derive(Clone)]
pub(super) struct Stdio {
    inner: Arc<Mutex<Inner>>,
}

struct Inner {
    log: Arc<GuestLog>,
    level: Level,
    /// The line that has no end yet.
    partial: Vec<u8>,
}

// === impl Stdio ===

impl Stdio {
    pub(super) fn new(log: Arc<GuestLog>, level: Level) -> Self {
        Self { inner: Arc::new(Mutex::new(Inner { log, level, partial: Vec::new() })) }
    }
}

impl IsTerminal for Stdio {
    fn is_terminal(&self) -> bool {
        false
    }
}

impl StdoutStream for Stdio {
    fn p2_stream(&self) -> Box<dyn OutputStream> {
        Box::new(self.clone())
    }

    /// Only later versions of WASI, which are not linked, ask for this one.
    fn async_stream(&self) -> Box<dyn AsyncWrite + Send + Sync> {
        Box::new(tokio::io::sink())
    }
}

impl OutputStream for Stdio {
    fn write(&mut self, bytes: Bytes) -> StreamResult<()> {
        self.inner.lock().write(&bytes);
        Ok(())
    }

    fn flush(&mut self) -> StreamResult<()> {
        Ok(())
    }

    fn check_write(&mut self) -> StreamResult<usize> {
        Ok(PERMIT)
    }
}

#[async_trait]
impl Pollable for Stdio {
    async fn ready(&mut self) {}
}

// === impl Inner ===

impl Inner {
    fn write(&mut self, bytes: &[u8]) {
        let mut lines = bytes.split(|byte| *byte == b'\n');
        let last = lines.next_back();
        for line in lines {
            self.take(line);
            self.end_line();
        }
        self.take(last.unwrap_or_default());
    }

    /// Adds to the line as much as the log would keep of it.
    fn take(&mut self, bytes: &[u8]) {
        let room = MAX_MESSAGE_BYTES - self.partial.len();
        self.partial.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }

    fn end_line(&mut self) {
        if !self.partial.is_empty() {
            self.log.write(self.level, &String::from_utf8_lossy(&self.partial), &[]);
            self.partial.clear();
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.end_line();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{LogLine, LogSink};

    #[derive(Default)]
    struct Lines(Mutex<Vec<String>>);

    impl LogSink for Lines {
        fn enabled(&self, _: &str, _: Level) -> bool {
            true
        }

        fn write(&self, line: LogLine<'_>) {
            self.0.lock().push(line.message.to_owned());
        }
    }

    #[test]
    fn bytes_become_lines() {
        let sink = Arc::new(Lines::default());
        let log = Arc::new(GuestLog::new("p".into(), 1, 100, Arc::clone(&sink) as _));
        let mut stdio = Stdio::new(log, Level::Warn);
        for chunk in ["pan", "ic: as asked\n\ngorou", "tine 1\n"] {
            stdio.write(Bytes::copy_from_slice(chunk.as_bytes())).unwrap();
        }
        stdio.write(Bytes::from(vec![b'x'; 3 * MAX_MESSAGE_BYTES])).unwrap();
        assert_eq!(*sink.0.lock(), ["panic: as asked", "goroutine 1"]);
        drop(stdio);
        assert_eq!(sink.0.lock()[2], "x".repeat(MAX_MESSAGE_BYTES));
    }
}

//! A guest's stdout and stderr as streams of WASI.

use std::sync::Arc;

use bytes::Bytes;
use tokio::io::AsyncWrite;
use wasmtime_wasi::{
    async_trait,
    cli::{IsTerminal, StdoutStream},
    p2::{OutputStream, Pollable, StreamResult},
};

use crate::output::{Output, Stream};

/// The maximum number of bytes in one write.
const PERMIT: usize = 64 << 10;

/// One of the two streams. Clones write to the same lines.
#[derive(Clone)]
pub(super) struct Stdio {
    output: Arc<Output>,
    stream: Stream,
}

// === impl Stdio ===

impl Stdio {
    pub(super) fn new(output: Arc<Output>, stream: Stream) -> Self {
        Self { output, stream }
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

    /// Used by later versions of WASI only, which are not linked.
    fn async_stream(&self) -> Box<dyn AsyncWrite + Send + Sync> {
        Box::new(tokio::io::sink())
    }
}

impl OutputStream for Stdio {
    fn write(&mut self, bytes: Bytes) -> StreamResult<()> {
        self.output.write(self.stream, &bytes);
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

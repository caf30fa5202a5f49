//! Prints events to standard output, one line for each.
//!
//! A thread of its own writes the lines, since standard output may block without limit: a pipe that is not
//! read, a stopped terminal. No other code waits for this thread, except the end of the process, for a short
//! time.

use std::fs::File;
use std::io::{self, ErrorKind, Write};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use futures::FutureExt;
use oarlock_controller::report::{Line, Reports, write_json};
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use crate::args::Output;

/// The time without any written byte after which the end of the process stops waiting.
const BLOCKED_LIMIT: Duration = Duration::from_secs(2);

/// The time after which the printer retries a write.
const RETRY_PAUSE: Duration = Duration::from_millis(50);

/// The number of bytes that are written together. The last line of a batch may exceed it.
const BATCH: usize = 64 << 10;

/// The printing thread.
pub(crate) struct Printer {
    ended: oneshot::Receiver<()>,
    n_written: Arc<AtomicU64>,
}

/// An output and its state.
struct Sink<W> {
    out: W,
    n_written: Arc<AtomicU64>,
    /// The last write ended within a line.
    is_mid_line: bool,
    has_failed: bool,
}

/// The output is closed for ever.
#[derive(Debug, PartialEq, Eq)]
struct Closed;

// === impl Printer ===

impl Printer {
    /// Starts to print, until every reporter is dropped or the output is closed. Then it cancels `closed`;
    /// without such a token, the host continues.
    pub(crate) fn start(
        reports: Reports,
        output: Output,
        closed: Option<CancellationToken>,
    ) -> io::Result<Self> {
        let n_written = Arc::new(AtomicU64::new(0));
        let (end, ended) = oneshot::channel();
        let runtime = Handle::current();
        let counter = n_written.clone();
        thread::Builder::new().name("printer".to_owned()).spawn(move || {
            // Without the lock of `std::io::stdout`, which would be held while a write blocks.
            match io::stdout().as_fd().try_clone_to_owned() {
                Ok(stdout) => {
                    let sink = Sink::new(File::from(stdout), counter);
                    let is_closed = print(reports, output, &runtime, sink) == Err(Closed);
                    match closed {
                        Some(closed) if is_closed => closed.cancel(),
                        None if is_closed => tracing::warn!(
                            "standard output is closed: lines are counted and not printed, the host continues"
                        ),
                        _ => {}
                    }
                }
                Err(error) => tracing::warn!(%error, "standard output is missing; no events are printed"),
            }
            // A dropped sender also means the end.
            let _ = end.send(());
        })?;
        Ok(Self { ended, n_written })
    }

    /// Waits until all lines are printed, as long as the output accepts bytes.
    pub(crate) async fn finish(mut self) {
        let mut n_before = u64::MAX;
        loop {
            let n_written = self.n_written.load(Ordering::Relaxed);
            if n_written == n_before {
                tracing::warn!("standard output is blocked: the last lines are not printed");
                return;
            }
            n_before = n_written;
            if tokio::time::timeout(BLOCKED_LIMIT, &mut self.ended).await.is_ok() {
                return;
            }
        }
    }
}

fn print(
    mut reports: Reports,
    output: Output,
    runtime: &Handle,
    mut sink: Sink<impl Write>,
) -> Result<(), Closed> {
    let mut batch = Vec::new();
    while let Some(line) = runtime.block_on(reports.next()) {
        let n_lines = fill(&mut batch, line, &mut reports, output);
        match sink.write(&batch) {
            Ok(true) => {}
            Ok(false) => reports.lost(n_lines),
            Err(Closed) => {
                reports.lost(n_lines);
                return Err(Closed);
            }
        }
    }
    Ok(())
}

/// Puts a line, and further lines that wait, into the batch. Returns their number.
fn fill(batch: &mut Vec<u8>, first: Line, reports: &mut Reports, output: Output) -> u64 {
    batch.clear();
    let (mut n_lines, mut next) = (0, Some(first));
    while let Some(line) = next {
        // A write to memory does not fail, and every line can be serialised.
        if let Err(error) = write(batch, &line, output) {
            tracing::error!(%error, "a line cannot be written");
        }
        n_lines += 1;
        next = if batch.len() < BATCH { reports.next().now_or_never().flatten() } else { None };
    }
    n_lines
}

fn write(into: &mut impl Write, line: &Line, output: Output) -> io::Result<()> {
    match output {
        Output::Human => writeln!(into, "{line}"),
        Output::Json => {
            write_json(&mut *into, line)?;
            into.write_all(b"\n")
        }
    }
}

// === impl Sink ===

impl<W: Write> Sink<W> {
    fn new(out: W, n_written: Arc<AtomicU64>) -> Self {
        Self { out, n_written, is_mid_line: false, has_failed: false }
    }

    /// Writes whole lines. Returns false if they cannot be written now, for example since a disk is full.
    fn write(&mut self, lines: &[u8]) -> Result<bool, Closed> {
        let written = match self.is_mid_line {
            // Ends the incomplete line.
            true => self.write_all(b"\n").and_then(|()| self.write_all(lines)),
            false => self.write_all(lines),
        };
        match written {
            Ok(()) => {
                if std::mem::take(&mut self.has_failed) {
                    tracing::info!("standard output accepts lines again");
                }
                Ok(true)
            }
            Err(error) if error.kind() == ErrorKind::BrokenPipe => Err(Closed),
            Err(error) => {
                if !std::mem::replace(&mut self.has_failed, true) {
                    tracing::warn!(%error, "standard output accepts no lines: lost lines are counted, and later lines are tried again");
                }
                thread::park_timeout(RETRY_PAUSE);
                Ok(false)
            }
        }
    }

    fn write_all(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            match self.out.write(bytes) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(n) => {
                    self.is_mid_line = bytes[n - 1] != b'\n';
                    self.n_written.fetch_add(n as u64, Ordering::Relaxed);
                    bytes = &bytes[n..];
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                // Another process has made the pipe non-blocking.
                Err(error) if error.kind() == ErrorKind::WouldBlock => thread::park_timeout(RETRY_PAUSE),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;

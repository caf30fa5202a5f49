//! The host's own log: `tracing` events on standard error. The printer prints the events of plugins.
//!
//! A thread of its own writes the lines, since standard error may block, as standard output may; often both
//! are the same pipe. Lines beyond a limit on waiting bytes are dropped and counted.

use std::ffi::OsStr;
use std::io::{self, IsTerminal, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use tracing_subscriber::EnvFilter;

use crate::args::Output;

/// The maximum number of bytes of log lines that wait to be written.
const MAX_BYTES: usize = 1 << 20;

/// How long the end of the process waits for standard error.
const WRITE_LIMIT: Duration = Duration::from_secs(1);

/// The log, to be flushed at the end of the process.
pub(crate) struct Log(Stderr);

/// Sends lines to the thread that writes them. Never waits.
#[derive(Clone)]
struct Stderr {
    lines: mpsc::Sender<Message>,
    shared: Arc<Waiting>,
}

#[derive(Default)]
struct Waiting {
    bytes: AtomicUsize,
    n_dropped: AtomicU64,
}

enum Message {
    Line(Vec<u8>),
    /// Asks for a message when all lines before this one are written.
    Flushed(mpsc::Sender<()>),
}

/// Installs the subscriber, which writes text or one JSON object for each event. Colours are used on
/// terminals only, unless `NO_COLOR` is set (<https://no-color.org>).
pub(crate) fn install(filter: &str, format: Output, no_color: Option<&OsStr>) -> Log {
    let is_coloured = io::stderr().is_terminal() && no_color.is_none_or(OsStr::is_empty);
    let parsed = EnvFilter::new(filter);
    let stderr = Stderr::start(io::stderr());
    let writer = stderr.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_env_filter(parsed)
        .with_writer(move || writer.clone())
        .with_ansi(is_coloured)
        .with_target(true);
    match format {
        Output::Human => subscriber.compact().init(),
        Output::Json => {
            let subscriber = subscriber.with_ansi(false).json().flatten_event(true);
            subscriber.with_current_span(false).with_span_list(false).init();
        }
    }
    Log(stderr)
}

/// Writes the last lines of the process to standard error. Returns soon, even if standard error is blocked.
pub(crate) fn print_at_end(lines: String) {
    let (written, is_written) = mpsc::channel();
    let writing = thread::Builder::new().name("last lines".to_owned());
    let write = move || {
        let _ = io::stderr().write_all(lines.as_bytes());
        let _ = written.send(());
    };
    if writing.spawn(write).is_ok() {
        let _ = is_written.recv_timeout(WRITE_LIMIT);
    }
}

// === impl Log ===

impl Log {
    /// Waits until all lines are written, unless standard error is blocked.
    pub(crate) fn flush(&self) {
        let (flushed, is_flushed) = mpsc::channel();
        if self.0.lines.send(Message::Flushed(flushed)).is_ok() {
            // After the limit, standard error counts as blocked.
            let _ = is_flushed.recv_timeout(WRITE_LIMIT);
        }
    }
}

// === impl Stderr ===

impl Stderr {
    fn start(out: impl Write + Send + 'static) -> Self {
        let (lines, receiver) = mpsc::channel();
        let shared = Arc::new(Waiting::default());
        let waiting = shared.clone();
        let writing = thread::Builder::new().name("log".to_owned());
        // Without the thread the lines are dropped at the limit and counted.
        let _ = writing.spawn(move || write_all(out, &receiver, &waiting));
        Self { lines, shared }
    }
}

impl Write for Stderr {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let taken = |used: usize| used.checked_add(line.len()).filter(|used| *used <= MAX_BYTES);
        let bytes = &self.shared.bytes;
        let is_taken = bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, taken).is_ok();
        if !is_taken || self.lines.send(Message::Line(line.to_vec())).is_err() {
            self.shared.n_dropped.fetch_add(1, Ordering::Relaxed);
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn write_all(mut out: impl Write, lines: &mpsc::Receiver<Message>, waiting: &Waiting) {
    for message in lines {
        match message {
            Message::Line(line) => {
                // An error of standard error cannot be reported anywhere.
                let _ = out.write_all(&line);
                waiting.bytes.fetch_sub(line.len(), Ordering::Relaxed);
                let n_dropped = waiting.n_dropped.swap(0, Ordering::Relaxed);
                if n_dropped > 0 {
                    let _ = writeln!(out, "{n_dropped} log lines were lost: standard error is too slow");
                }
            }
            Message::Flushed(flushed) => {
                // The receiver may have timed out.
                let _ = flushed.send(());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A writer that blocks until the test releases it.
    struct Blocked(mpsc::Receiver<()>, mpsc::Sender<Vec<u8>>);

    impl Write for Blocked {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let _ = self.0.recv();
            self.1.send(bytes.to_vec()).unwrap();
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_blocked_standard_error_blocks_no_caller_and_lost_lines_are_counted() {
        let (release, released) = mpsc::channel();
        let (written, is_written) = mpsc::channel();
        let mut stderr = Stderr::start(Blocked(released, written));
        let line = vec![b'x'; 1000];
        for _ in 0..10_000 {
            stderr.write_all(&line).unwrap();
        }
        assert!(stderr.shared.bytes.load(Ordering::Relaxed) <= MAX_BYTES);
        drop(release);
        Log(stderr.clone()).flush();
        drop(stderr);
        let written: Vec<_> = is_written.iter().flatten().collect();
        let written = String::from_utf8(written).unwrap();
        let n_lines = written.matches(&"x".repeat(1000)).count();
        let lost = format!("{} log lines were lost", 10_000 - n_lines);
        assert!(written.contains(&lost), "{lost}: {n_lines} were written");
    }
}

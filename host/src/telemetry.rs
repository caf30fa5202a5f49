//! Where the `tracing` events of the host's own parts go: standard error. What happens to plugins is no log, see `printer`.
//!
//! A thread of its own writes them, since standard error may block as standard output may; often the two are one pipe. What does not fit
//! into the memory that is set aside is counted.

use std::ffi::OsStr;
use std::io::{self, IsTerminal, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use tracing_subscriber::EnvFilter;

/// How many bytes of log lines may wait to be written.
const MAX_BYTES: usize = 1 << 20;

/// A standard error that takes nothing for this long is not waited for at the end.
const PATIENCE: Duration = Duration::from_secs(1);

/// The log, to be flushed at the end of the process.
pub(crate) struct Log(Stderr);

/// Hands lines over to the thread that writes them. Never waits.
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
    /// Everything before this was written.
    Flushed(mpsc::Sender<()>),
}

/// Installs the subscriber. A filter that cannot be read is reported and replaced by `warn`. Colours are for terminals, and
/// only where nobody has asked for none (<https://no-color.org>).
pub(crate) fn install(filter: &str, no_color: Option<&OsStr>) -> Log {
    let is_coloured = io::stderr().is_terminal() && no_color.is_none_or(OsStr::is_empty);
    let (parsed, complaint) = match EnvFilter::try_new(filter) {
        Ok(parsed) => (parsed, None),
        Err(error) => (EnvFilter::new("warn"), Some(error)),
    };
    let stderr = Stderr::start(io::stderr());
    let writer = stderr.clone();
    tracing_subscriber::fmt()
        .with_env_filter(parsed)
        .with_writer(move || writer.clone())
        .with_ansi(is_coloured)
        .with_target(true)
        .compact()
        .init();
    if let Some(error) = complaint {
        tracing::warn!(filter, %error, "this --log filter cannot be read; using `warn`");
    }
    Log(stderr)
}

/// Writes lines to standard error for the end of the process: whether or not standard error takes them, this returns soon.
pub(crate) fn say_at_the_end(lines: String) {
    let (written, is_written) = mpsc::channel();
    let writing = thread::Builder::new().name("last lines".to_owned());
    let write = move || {
        let _ = io::stderr().write_all(lines.as_bytes());
        let _ = written.send(());
    };
    if writing.spawn(write).is_ok() {
        let _ = is_written.recv_timeout(PATIENCE);
    }
}

// === impl Log ===

impl Log {
    /// Waits until what was logged is written, if standard error takes it.
    pub(crate) fn flush(&self) {
        let (flushed, is_flushed) = mpsc::channel();
        if self.0.lines.send(Message::Flushed(flushed)).is_ok() {
            // After that much time nobody reads it.
            let _ = is_flushed.recv_timeout(PATIENCE);
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
        // Without the thread there is no log: the lines fill their memory and are counted.
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
                // Where could one say that standard error is broken?
                let _ = out.write_all(&line);
                waiting.bytes.fetch_sub(line.len(), Ordering::Relaxed);
                let n_dropped = waiting.n_dropped.swap(0, Ordering::Relaxed);
                if n_dropped > 0 {
                    let _ = writeln!(out, "{n_dropped} log lines were lost: standard error is too slow");
                }
            }
            Message::Flushed(flushed) => {
                // Whoever waits may have given up.
                let _ = flushed.send(());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes nothing until it may.
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
    fn an_unread_standard_error_blocks_nobody_and_what_is_lost_is_counted() {
        let (go_on, may_go_on) = mpsc::channel();
        let (written, is_written) = mpsc::channel();
        let mut stderr = Stderr::start(Blocked(may_go_on, written));
        let line = vec![b'x'; 1000];
        for _ in 0..10_000 {
            stderr.write_all(&line).unwrap();
        }
        assert!(stderr.shared.bytes.load(Ordering::Relaxed) <= MAX_BYTES);
        drop(go_on);
        Log(stderr.clone()).flush();
        drop(stderr);
        let written: Vec<_> = is_written.iter().flatten().collect();
        let written = String::from_utf8(written).unwrap();
        let n_lines = written.matches(&"x".repeat(1000)).count();
        let lost = format!("{} log lines were lost", 10_000 - n_lines);
        assert!(written.contains(&lost), "{lost}: {n_lines} are there");
    }
}

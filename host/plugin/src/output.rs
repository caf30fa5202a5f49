//! The output of one instance: lines for the plugin's log, or part of the error of a failed call.
//!
//! A language runtime writes an exception to standard error, or logs it, and then traps. To show it once,
//! with the trap, this module holds lines of standard error and standard output, and lines of level error. It
//! releases them to the log when the call returns, waits for the host, logs a line of a lower level, or
//! writes more than the module holds. If the instance fails, [`Output::take`] returns the held lines. They
//! may quote secrets, as every line of a log may: no status has them.

use std::{collections::VecDeque, sync::Arc};

use parking_lot::Mutex;

use crate::{
    contract::Level,
    guest,
    guest::{
        GuestLog,
        log::{self, MAX_MESSAGE_BYTES, MAX_PAIR_NAME_BYTES, MAX_PAIR_VALUE_BYTES, MAX_PAIRS},
    },
};

/// The maximum size of the held lines. Beyond it the oldest lines go to the log; one line is always held,
/// which may have 45 KiB.
const MAX_HELD_BYTES: usize = 8 << 10;
/// The maximum length of the text for an error, escaped.
const MAX_TEXT_BYTES: usize = 2 * MAX_HELD_BYTES;

/// A stream of WASI.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stream {
    Stdout,
    Stderr,
}

/// The output of one instance.
pub(crate) struct Output {
    log: Arc<GuestLog>,
    written: Mutex<Written>,
}

#[derive(Default)]
struct Written {
    held: VecDeque<Line>,
    held_bytes: usize,
    /// The incomplete lines of the two streams.
    partial: [Vec<u8>; 2],
}

struct Line {
    level: Level,
    object: Option<String>,
    message: String,
    pairs: Vec<(String, String)>,
}

// === impl Output ===

impl Output {
    pub(crate) fn new(log: Arc<GuestLog>) -> Self {
        Self { log, written: Mutex::default() }
    }

    /// Adds a line that the guest logs, while it is called about this object.
    pub(crate) fn log(&self, level: Level, object: Option<&str>, message: &str, pairs: &[(&str, &str)]) {
        let mut written = self.written.lock();
        if level == Level::Error {
            let cut = |text, at| log::cut(text, at).to_owned();
            let pairs = pairs.iter().take(MAX_PAIRS);
            let pairs =
                pairs.map(|(name, value)| (cut(name, MAX_PAIR_NAME_BYTES), cut(value, MAX_PAIR_VALUE_BYTES)));
            let object = object.map(|object| cut(object, MAX_PAIR_VALUE_BYTES));
            let message = cut(message, MAX_MESSAGE_BYTES);
            written.hold(Line { level, object, message, pairs: pairs.collect() }, &self.log);
            return;
        }
        written.flush(&self.log);
        drop(written);
        self.log.write(level, object, message, pairs);
    }

    /// Adds bytes that the guest writes to a stream.
    pub(crate) fn write(&self, stream: Stream, bytes: &[u8]) {
        let mut written = self.written.lock();
        let mut lines = bytes.split(|byte| *byte == b'\n');
        let last = lines.next_back();
        for line in lines {
            written.append(stream, line);
            written.end_line(stream, &self.log);
        }
        written.append(stream, last.unwrap_or_default());
    }

    /// Writes the held lines to the log.
    pub(crate) fn flush(&self) {
        self.written.lock().flush(&self.log);
    }

    /// Removes the held lines and returns them as a text, for the error of a failed call.
    pub(crate) fn take(&self) -> String {
        let mut written = self.written.lock();
        let Written { held, held_bytes, partial } = &mut *written;
        *held_bytes = 0;
        let mut text = String::new();
        for Line { message, pairs, .. } in held.drain(..) {
            text.push_str(&message);
            pairs.iter().for_each(|(name, value)| {
                [" ", name, "=", value].iter().for_each(|part| text.push_str(part));
            });
            text.push('\n');
        }
        for stream in partial.iter_mut().filter(|stream| !stream.is_empty()) {
            text.push_str(&String::from_utf8_lossy(stream));
            text.push('\n');
            stream.clear();
        }
        guest::text::lines(text.trim_end_matches('\n'), MAX_TEXT_BYTES)
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        let written = self.written.get_mut();
        written.end_line(Stream::Stdout, &self.log);
        written.end_line(Stream::Stderr, &self.log);
        written.flush(&self.log);
    }
}

// === impl Written ===

impl Written {
    /// Appends to a stream's incomplete line, up to the length of a log line.
    fn append(&mut self, stream: Stream, bytes: &[u8]) {
        let partial = &mut self.partial[stream as usize];
        let room = MAX_MESSAGE_BYTES - partial.len();
        partial.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }

    fn end_line(&mut self, stream: Stream, log: &GuestLog) {
        let partial = &mut self.partial[stream as usize];
        if partial.is_empty() {
            return;
        }
        let message = String::from_utf8_lossy(partial).into_owned();
        partial.clear();
        let level = match stream {
            Stream::Stdout => Level::Info,
            Stream::Stderr => Level::Warn,
        };
        self.hold(Line { level, object: None, message, pairs: Vec::new() }, log);
    }

    fn hold(&mut self, line: Line, log: &GuestLog) {
        self.held_bytes += line.bytes();
        self.held.push_back(line);
        while self.held_bytes > MAX_HELD_BYTES && self.held.len() > 1 {
            if let Some(oldest) = self.held.pop_front() {
                self.held_bytes -= oldest.bytes();
                oldest.write(log);
            }
        }
    }

    fn flush(&mut self, log: &GuestLog) {
        self.held_bytes = 0;
        self.held.drain(..).for_each(|line| line.write(log));
    }
}

// === impl Line ===

impl Line {
    fn bytes(&self) -> usize {
        self.message.len()
            + self.object.as_ref().map_or(0, String::len)
            + self.pairs.iter().map(|(name, value)| name.len() + value.len()).sum::<usize>()
    }

    fn write(self, log: &GuestLog) {
        let pairs: Vec<_> = self.pairs.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        log.write(self.level, self.object.as_deref(), &self.message, &pairs);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::guest::{LogLine, LogSink};

    #[derive(Default)]
    struct Lines(Mutex<Vec<String>>);

    impl LogSink for Lines {
        fn enabled(&self, _: &str, _: Level) -> bool {
            true
        }

        fn write(&self, line: LogLine<'_>) {
            self.0.lock().push(format!("{:?} {}", line.level, line.message));
        }
    }

    fn output() -> (Output, Arc<Lines>) {
        let lines = Arc::new(Lines::default());
        let log = GuestLog::new("p".into(), 1, 100_000, Arc::clone(&lines) as _);
        (Output::new(Arc::new(log)), lines)
    }

    #[test]
    fn bytes_are_split_into_lines() {
        let (output, lines) = output();
        for chunk in ["pan", "ic: as asked\n\ngorou", "tine 1\n"] {
            output.write(Stream::Stderr, chunk.as_bytes());
        }
        output.write(Stream::Stdout, b"printed\n");
        assert!(lines.0.lock().is_empty(), "the lines are held, since a trap may follow");
        output.flush();
        let expected = ["Level::Warn panic: as asked", "Level::Warn goroutine 1", "Level::Info printed"];
        assert_eq!(*lines.0.lock(), expected);
        output.write(Stream::Stderr, &vec![b'x'; 3 * MAX_MESSAGE_BYTES]);
        drop(output);
        assert_eq!(lines.0.lock()[3], format!("Level::Warn {}", "x".repeat(MAX_MESSAGE_BYTES)));
    }

    #[test]
    fn promise_4_a_held_line_is_as_short_as_one_in_the_log() {
        let (output, _) = output();
        let text = "x".repeat(1 << 20);
        output.log(Level::Error, Some(&text), &text, &[(text.as_str(), text.as_str()); 2 * MAX_PAIRS]);
        assert!(output.written.lock().held_bytes <= 46 << 10);
    }

    #[test]
    fn taken_lines_are_not_logged() {
        let (output, lines) = output();
        output.write(Stream::Stderr, b"Traceback:\n  File \"a.py\", line 3\nValueError: \x1b[31mno");
        assert_eq!(output.take(), "Traceback:\n  File \"a.py\", line 3\nValueError: \\u{1b}[31mno");
        assert_eq!(output.take(), "");
        output.log(Level::Error, Some("ns/o"), "panicked at a.rs:3:5:\nno", &[("with", "pairs")]);
        assert_eq!(output.take(), "panicked at a.rs:3:5:\nno with=pairs");
        drop(output);
        assert!(lines.0.lock().is_empty());
    }

    #[test]
    fn lines_keep_their_order() {
        let (output, lines) = output();
        output.log(Level::Error, None, "one", &[]);
        output.write(Stream::Stdout, b"two\n");
        output.log(Level::Info, None, "three", &[]);
        output.log(Level::Error, None, "four", &[]);
        drop(output);
        assert_eq!(
            *lines.0.lock(),
            ["Level::Error one", "Level::Info two", "Level::Info three", "Level::Error four"]
        );
    }

    #[test]
    fn held_lines_are_bounded_and_none_is_lost() {
        let (output, lines) = output();
        for n in 0..1000 {
            output.write(Stream::Stderr, format!("line {n:>90}\n").as_bytes());
        }
        let taken = output.take();
        assert!(taken.len() <= MAX_HELD_BYTES + 100 && taken.ends_with("999"), "{}", taken.len());
        assert_eq!(lines.0.lock().len() + taken.lines().count(), 1000);
    }
}

//! Log lines of guests: truncated, and limited to the plugin's rate.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use oarlock_flow_control::{RateLimiter, TokenBucket};
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::contract::Level;

/// The maximum length of a line.
pub const MAX_MESSAGE_BYTES: usize = 8 << 10;
/// The maximum number of pairs of a line; further pairs are dropped.
pub const MAX_PAIRS: usize = 32;
/// The maximum lengths of a pair's name and value.
pub(crate) const MAX_PAIR_NAME_BYTES: usize = 128;
pub(crate) const MAX_PAIR_VALUE_BYTES: usize = 1 << 10;

/// The shortest time between two reports of dropped lines. A plugin that always exceeds its rate would
/// otherwise get a report for each line that is written.
const REPORT_INTERVAL: Duration = Duration::from_secs(10);

/// Receives the log lines of guests. It is called on runtime workers and must not block.
pub trait LogSink: Send + Sync + 'static {
    /// Returns whether lines of this level are written.
    fn enabled(&self, plugin: &str, level: Level) -> bool;

    /// Writes one line.
    fn write(&self, line: LogLine<'_>);
}

/// One line of a guest, within the limits of the contract.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LogLine<'a> {
    /// The plugin's name.
    pub plugin: &'a str,
    /// The plugin's generation.
    pub generation: u64,
    /// The level.
    pub level: Level,
    /// The object or key that the guest was called about, as NAMESPACE/NAME; none outside of such a call, and
    /// for what it wrote to a stream.
    pub object: Option<&'a str>,
    /// At most 8 KiB.
    pub message: &'a str,
    /// At most 32 pairs.
    pub pairs: &'a [(&'a str, &'a str)],
}

/// The log of one generation of a plugin. All its instances share it, and so have one rate together.
pub struct GuestLog {
    plugin: Arc<str>,
    generation: u64,
    sink: Arc<dyn LogSink>,
    /// One token per line; holds the tokens of one second.
    bucket: TokenBucket,
    /// The lines that were dropped since the last report of dropped lines.
    n_suppressed: AtomicU64,
    /// When dropped lines were reported last.
    reported_at: Mutex<Option<Instant>>,
}

// === impl GuestLog ===

impl GuestLog {
    /// Creates the log of one generation of a plugin.
    pub fn new(plugin: Arc<str>, generation: u64, lines_per_second: u32, sink: Arc<dyn LogSink>) -> Self {
        let bucket = TokenBucket::per_second(f64::from(lines_per_second), lines_per_second);
        Self {
            plugin,
            generation,
            sink,
            bucket,
            n_suppressed: AtomicU64::new(0),
            reported_at: Mutex::new(None),
        }
    }

    /// Returns the plugin's name.
    #[must_use]
    pub fn plugin(&self) -> &str {
        &self.plugin
    }

    /// Returns the plugin's generation.
    #[must_use]
    pub fn generation(&self) -> u64 {
        self.generation
    }

    pub(crate) fn enabled(&self, level: Level) -> bool {
        self.sink.enabled(&self.plugin, level)
    }

    pub(crate) fn write(&self, level: Level, object: Option<&str>, message: &str, pairs: &[(&str, &str)]) {
        if !self.enabled(level) {
            return;
        }
        if !self.bucket.try_accept() {
            self.n_suppressed.fetch_add(1, Ordering::Relaxed);
            return;
        }
        if self.is_report_due() {
            self.report_suppressed();
        }
        let pairs: Vec<_> = pairs
            .iter()
            .take(MAX_PAIRS)
            .map(|(name, value)| (cut(name, MAX_PAIR_NAME_BYTES), cut(value, MAX_PAIR_VALUE_BYTES)))
            .collect();
        let object = object.map(|object| cut(object, MAX_PAIR_VALUE_BYTES));
        self.put(level, object, cut(message, MAX_MESSAGE_BYTES), &pairs);
    }

    /// Reports the number of suppressed lines, if that is due and the rate allows one more line.
    pub(crate) fn call_ends(&self) {
        if self.is_report_due() && self.bucket.try_accept() {
            self.report_suppressed();
        }
    }

    /// Returns whether lines were dropped that may be reported now: the first at once, and later ones at
    /// intervals.
    fn is_report_due(&self) -> bool {
        self.n_suppressed.load(Ordering::Relaxed) > 0
            && self.reported_at.lock().is_none_or(|at| at.elapsed() >= REPORT_INTERVAL)
    }

    fn report_suppressed(&self) {
        let suppressed = self.n_suppressed.swap(0, Ordering::Relaxed);
        if suppressed > 0 {
            *self.reported_at.lock() = Some(Instant::now());
            let lines = suppressed.to_string();
            self.put(
                Level::Warn,
                None,
                "lines beyond the plugin's log rate were dropped",
                &[("lines", &lines)],
            );
        }
    }

    fn put(&self, level: Level, object: Option<&str>, message: &str, pairs: &[(&str, &str)]) {
        let Self { plugin, generation, sink, bucket: _, n_suppressed: _, reported_at: _ } = self;
        sink.write(LogLine { plugin, generation: *generation, level, object, message, pairs });
    }
}

impl Drop for GuestLog {
    fn drop(&mut self) {
        self.report_suppressed();
    }
}

/// Truncates a text at a character's boundary.
pub(crate) fn cut(text: &str, at: usize) -> &str {
    &text[..text.floor_char_boundary(at)]
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// Records the lines that it receives.
    #[derive(Default)]
    struct Recorder(parking_lot::Mutex<Vec<String>>);

    impl LogSink for Recorder {
        fn enabled(&self, _: &str, _: Level) -> bool {
            true
        }

        fn write(&self, line: LogLine<'_>) {
            let pairs: String = line.pairs.iter().map(|(name, value)| format!(" {name}={value}")).collect();
            self.0.lock().push(format!("{}{pairs}", line.message));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn lines_beyond_the_rate_are_dropped_and_their_number_is_reported() {
        let recorder = Arc::new(Recorder::default());
        let log = GuestLog::new("greeter".into(), 1, 2, recorder.clone());
        let taken = || std::mem::take(&mut *recorder.0.lock());
        for line in ["1", "2", "3", "4"] {
            log.write(Level::Info, None, line, &[]);
        }
        log.call_ends();
        assert_eq!(taken(), ["1", "2"]);

        tokio::time::advance(Duration::from_millis(500)).await;
        log.write(Level::Info, None, "5", &[]);
        assert_eq!(taken(), ["lines beyond the plugin's log rate were dropped lines=2", "5"]);

        // However long the log is silent, it holds the tokens of one second.
        tokio::time::advance(Duration::from_secs(9)).await;
        for line in ["6", "7", "8"] {
            log.write(Level::Info, None, line, &[]);
        }
        assert_eq!(taken(), ["6", "7"]);
        drop(log);
        assert_eq!(taken(), ["lines beyond the plugin's log rate were dropped lines=1"]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_plugin_that_always_exceeds_its_rate_gets_one_report_in_ten_seconds() {
        let recorder = Arc::new(Recorder::default());
        let log = GuestLog::new("greeter".into(), 1, 100, recorder.clone());
        for _ in 0..25_000 {
            log.write(Level::Info, None, "line", &[]);
            log.call_ends();
            tokio::time::advance(Duration::from_millis(1)).await;
        }
        drop(log);
        let lines = std::mem::take(&mut *recorder.0.lock());
        let dropped = |line: &&String| line.starts_with("lines beyond the plugin's log rate");
        let reports: Vec<u64> = lines
            .iter()
            .filter(dropped)
            .filter_map(|line| line.rsplit_once("lines=")?.1.parse().ok())
            .collect();
        // The first line beyond the burst, after 10 s, after 20 s, and the rest at the end.
        assert_eq!(reports.len(), 4, "{reports:?}");
        assert_eq!(reports.iter().sum::<u64>() + (lines.len() - reports.len()) as u64, 25_000);
    }

    #[test]
    fn text_is_truncated_between_characters() {
        assert_eq!(cut("aé", 2), "a");
        assert_eq!(cut("aé", 3), "aé");
        assert_eq!(cut("ab", 9), "ab");
    }
}

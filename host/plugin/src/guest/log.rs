//! Log lines of guests: truncated, and limited to the plugin's rate.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use parking_lot::Mutex;

use crate::contract::Level;

/// The maximum length of a line.
pub const MAX_MESSAGE_BYTES: usize = 8 << 10;
/// The maximum number of pairs of a line; further pairs are dropped.
pub const MAX_PAIRS: usize = 32;
/// The maximum lengths of a pair's name and value.
const MAX_PAIR_NAME_BYTES: usize = 128;
const MAX_PAIR_VALUE_BYTES: usize = 1 << 10;

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
    /// Holds the tokens of one second.
    bucket: Mutex<Bucket>,
}

struct Bucket {
    per_second: u32,
    tokens: f64,
    filled: Instant,
    suppressed: u64,
}

// === impl GuestLog ===

impl GuestLog {
    /// Creates the log of one generation of a plugin.
    pub fn new(plugin: Arc<str>, generation: u64, lines_per_second: u32, sink: Arc<dyn LogSink>) -> Self {
        let bucket = Bucket {
            per_second: lines_per_second,
            tokens: f64::from(lines_per_second),
            filled: Instant::now(),
            suppressed: 0,
        };
        Self { plugin, generation, sink, bucket: Mutex::new(bucket) }
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

    pub(crate) fn write(&self, level: Level, message: &str, pairs: &[(&str, &str)]) {
        if !self.enabled(level) {
            return;
        }
        let (admitted, suppressed) = self.bucket.lock().take(Instant::now());
        self.report_suppressed(suppressed);
        if !admitted {
            return;
        }
        let pairs: Vec<_> = pairs
            .iter()
            .take(MAX_PAIRS)
            .map(|(name, value)| (cut(name, MAX_PAIR_NAME_BYTES), cut(value, MAX_PAIR_VALUE_BYTES)))
            .collect();
        self.put(level, cut(message, MAX_MESSAGE_BYTES), &pairs);
    }

    /// Reports the number of suppressed lines, if the rate allows a line.
    pub(crate) fn call_ends(&self) {
        let suppressed = {
            let mut bucket = self.bucket.lock();
            if bucket.suppressed == 0 { 0 } else { bucket.report(Instant::now()) }
        };
        self.report_suppressed(suppressed);
    }

    fn report_suppressed(&self, suppressed: u64) {
        if suppressed > 0 {
            let lines = suppressed.to_string();
            self.put(Level::Warn, "lines beyond the plugin's log rate were dropped", &[("lines", &lines)]);
        }
    }

    fn put(&self, level: Level, message: &str, pairs: &[(&str, &str)]) {
        let Self { plugin, generation, sink, bucket: _ } = self;
        sink.write(LogLine { plugin, generation: *generation, level, message, pairs });
    }
}

impl Drop for GuestLog {
    fn drop(&mut self) {
        let suppressed = self.bucket.get_mut().suppressed;
        self.report_suppressed(suppressed);
    }
}

// === impl Bucket ===

impl Bucket {
    /// Takes one token if there is one. Also returns the number of lines that were suppressed before, which
    /// is then reset.
    fn take(&mut self, now: Instant) -> (bool, u64) {
        self.fill(now);
        if self.tokens < 1.0 {
            self.suppressed += 1;
            return (false, 0);
        }
        self.tokens -= 1.0;
        (true, std::mem::take(&mut self.suppressed))
    }

    fn report(&mut self, now: Instant) -> u64 {
        self.fill(now);
        if self.tokens < 1.0 { 0 } else { std::mem::take(&mut self.suppressed) }
    }

    fn fill(&mut self, now: Instant) {
        let elapsed: Duration = now.saturating_duration_since(self.filled);
        let rate = f64::from(self.per_second);
        self.tokens = (self.tokens + elapsed.as_secs_f64() * rate).min(rate);
        self.filled = now;
    }
}

/// Truncates a text at a character's boundary.
fn cut(text: &str, at: usize) -> &str {
    &text[..text.floor_char_boundary(at)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_fills_with_time_and_counts_suppressed_lines() {
        let start = Instant::now();
        let mut bucket = Bucket { per_second: 2, tokens: 2.0, filled: start, suppressed: 0 };
        assert_eq!(bucket.take(start), (true, 0));
        assert_eq!(bucket.take(start), (true, 0));
        assert_eq!(bucket.take(start), (false, 0));
        assert_eq!(bucket.take(start), (false, 0));
        assert_eq!(bucket.report(start), 0);
        assert_eq!(bucket.take(start + Duration::from_millis(500)), (true, 2));
        assert_eq!(bucket.take(start + Duration::from_secs(9)), (true, 0));
        assert!(bucket.tokens <= 2.0);
    }

    #[test]
    fn text_is_truncated_between_characters() {
        assert_eq!(cut("aé", 2), "a");
        assert_eq!(cut("aé", 3), "aé");
        assert_eq!(cut("ab", 9), "ab");
    }
}

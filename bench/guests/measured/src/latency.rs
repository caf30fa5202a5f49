//! The latency of updates: from the time at which the server was to send them until the plugin is called.

use std::ops::Range;

use serde::Deserialize;

/// Updates between two reports of all buckets, after the first so many.
const INTERVAL: u64 = 64;

/// The upper bounds of the buckets in milliseconds. A longer latency counts as the last one.
const BOUNDS: [u32; 20] =
    [1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 70, 100, 150, 200, 300, 500, 1_000, 2_000, 5_000, 60_000];

/// When the server sends each update.
#[derive(Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Schedule {
    /// When it sends the first one, in milliseconds since 1970.
    at_ms: f64,
    /// Updates a second.
    rate: f64,
    /// The resourceVersion before the first one; each update increases it by one.
    first_version: f64,
}

/// A histogram, and the longest latency.
#[derive(Default)]
pub(crate) struct Latency {
    counts: [u32; BOUNDS.len()],
    n: u64,
    longest: f64,
}

impl Schedule {
    pub(crate) fn latency_ms(&self, resource_version: &str, now_ms: f64) -> f64 {
        let version: f64 = resource_version.parse().unwrap_or(self.first_version);
        let n_before = (version - self.first_version - 1.0).max(0.0);
        now_ms - (self.at_ms + n_before * 1_000.0 / self.rate)
    }
}

impl Latency {
    /// Adds a latency. Returns the buckets to report: one of the first updates changes one bucket, and later
    /// ones are reported together.
    pub(crate) fn add(&mut self, ms: f64) -> Range<usize> {
        let bucket = BOUNDS.iter().position(|bound| ms <= f64::from(*bound)).unwrap_or(BOUNDS.len() - 1);
        self.counts[bucket] += 1;
        self.longest = self.longest.max(ms);
        self.n += 1;
        match self.n {
            n if n < INTERVAL => bucket..bucket + 1,
            n if n.is_multiple_of(INTERVAL) => 0..BOUNDS.len(),
            _ => 0..0,
        }
    }

    /// Returns the longest latency in milliseconds.
    pub(crate) fn longest(&self) -> f64 {
        self.longest
    }

    /// Returns the upper bound of each of these buckets that is not empty, in milliseconds, and its count.
    pub(crate) fn buckets(&self, of: Range<usize>) -> impl Iterator<Item = (u32, u32)> {
        let all = BOUNDS.into_iter().zip(self.counts);
        all.take(of.end).skip(of.start).filter(|(_, count)| *count > 0)
    }
}

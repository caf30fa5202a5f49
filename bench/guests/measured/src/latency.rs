//! The latency of updates: from the time at which the server was to send them until the plugin is called.

use serde::Deserialize;

/// Updates between two readings, after the first so many.
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
    /// Adds a latency; returns whether it is time for a reading.
    pub(crate) fn add(&mut self, ms: f64) -> bool {
        let bucket = BOUNDS.iter().position(|bound| ms <= f64::from(*bound));
        self.counts[bucket.unwrap_or(BOUNDS.len() - 1)] += 1;
        self.longest = self.longest.max(ms);
        self.n += 1;
        self.n < INTERVAL || self.n.is_multiple_of(INTERVAL)
    }

    /// Returns the longest latency in milliseconds.
    pub(crate) fn longest(&self) -> f64 {
        self.longest
    }

    /// Returns the upper bound of each bucket that is not empty, in milliseconds, and its count.
    pub(crate) fn buckets(&self) -> impl Iterator<Item = (u32, u32)> {
        BOUNDS.into_iter().zip(self.counts).filter(|(_, count)| *count > 0)
    }
}

//! A histogram of durations that takes two atomic additions for an observation, and no lock.
//!
//! Its buckets are finer than those of the page: four for each power of two, so that a quantile is off by at
//! most a quarter. The bounds of the page's buckets are among its own bounds.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use once_cell::race::OnceBox;
use serde::{Serialize, Serializer};

/// The width of the first buckets, in nanoseconds: a sixteenth of the page's first bound.
const UNIT: u64 = 3_125;

/// The first buckets all have the width [`UNIT`].
const N_LINEAR: usize = 8;

/// The buckets: up to 14 minutes, beyond any deadline, and one for longer durations.
const N_BUCKETS: usize = N_LINEAR + 4 * 25 + 1;

/// The number of buckets that are allocated together, at the first duration that one of them counts. The
/// durations of one function are mostly in a few neighbouring buckets, and a plugin has several histograms.
const GROUP: usize = 8;

/// The page's bounds: from 50 µs, a call that does almost nothing, times four each, to 14 min.
const N_PAGE_BOUNDS: usize = 13;

/// Counts durations.
#[derive(Debug, Default)]
pub(crate) struct Histogram {
    groups: [OnceBox<[AtomicU64; GROUP]>; N_BUCKETS.div_ceil(GROUP)],
    sum_ns: AtomicU64,
}

/// The state of a [`Histogram`]. Serialises as pairs of a bucket's upper bound in nanoseconds (0 for the last
/// bucket, which has none) and its count; empty buckets are left out.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct HistogramView {
    buckets: [u64; N_BUCKETS],
    sum_ns: u64,
}

// === impl Histogram ===

impl Histogram {
    /// Counts one duration.
    pub(crate) fn observe(&self, duration: Duration) {
        let ns = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        let bucket = bucket_of(ns);
        let group = self.groups[bucket / GROUP].get_or_init(Box::default);
        group[bucket % GROUP].fetch_add(1, Relaxed);
        self.sum_ns.fetch_add(ns, Relaxed);
    }

    pub(crate) fn view(&self) -> HistogramView {
        let count = |bucket: usize| {
            self.groups[bucket / GROUP].get().map_or(0, |group| group[bucket % GROUP].load(Relaxed))
        };
        HistogramView { buckets: std::array::from_fn(count), sum_ns: self.sum_ns.load(Relaxed) }
    }
}

// === impl HistogramView ===

impl HistogramView {
    /// Returns the number of durations.
    pub(crate) fn count(&self) -> u64 {
        self.buckets.iter().sum()
    }

    /// Returns their sum in seconds.
    pub(crate) fn sum_seconds(&self) -> f64 {
        self.sum_ns as f64 / 1e9
    }

    /// Returns the buckets of the page: upper bound in seconds, and how many durations are above the bound
    /// before and not above this one. The last bound is infinite.
    pub(crate) fn page_buckets(&self) -> Vec<(f64, u64)> {
        let mut rest = &self.buckets[..];
        let mut buckets = Vec::with_capacity(N_PAGE_BOUNDS + 1);
        let mut n_before = 0;
        for bound in 0..N_PAGE_BOUNDS {
            let ns = 50_000_u64 << (2 * bound);
            let end = bucket_of(ns) + 1 - n_before;
            let (within, after) = rest.split_at(end);
            buckets.push((ns as f64 / 1e9, within.iter().sum()));
            (rest, n_before) = (after, n_before + end);
        }
        buckets.push((f64::INFINITY, rest.iter().sum()));
        buckets
    }

    pub(crate) fn add(&mut self, other: &Self) {
        for (bucket, n) in self.buckets.iter_mut().zip(&other.buckets) {
            *bucket += n;
        }
        self.sum_ns = self.sum_ns.saturating_add(other.sum_ns);
    }
}

impl Default for HistogramView {
    fn default() -> Self {
        Self { buckets: [0; N_BUCKETS], sum_ns: 0 }
    }
}

impl Serialize for HistogramView {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let counted = self.buckets.iter().enumerate().filter(|(_, n)| **n > 0);
        serializer.collect_seq(counted.map(|(bucket, n)| (upper_bound_ns(bucket).unwrap_or(0), *n)))
    }
}

/// Returns the bucket of a duration. A duration that equals a bound belongs to the bucket below it.
fn bucket_of(ns: u64) -> usize {
    let units = ns.saturating_sub(1) / UNIT;
    if units < N_LINEAR as u64 {
        return units as usize;
    }
    let power = units.ilog2() as usize;
    let quarter = (units >> (power - 2)) as usize & 3;
    (N_LINEAR + (power - 3) * 4 + quarter).min(N_BUCKETS - 1)
}

/// Returns the upper bound of a bucket; the last one has none.
fn upper_bound_ns(bucket: usize) -> Option<u64> {
    let units = match bucket.checked_sub(N_LINEAR) {
        None => bucket as u64 + 1,
        Some(_) if bucket == N_BUCKETS - 1 => return None,
        Some(above) => (5 + above as u64 % 4) << (above / 4 + 1),
    };
    Some(units * UNIT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_duration_is_between_the_bounds_of_its_bucket() {
        let mut below = 0;
        for bucket in 0..N_BUCKETS - 1 {
            let bound = upper_bound_ns(bucket).unwrap();
            assert_eq!(bucket_of(below + 1), bucket, "the shortest");
            assert_eq!(bucket_of(bound), bucket, "the longest");
            assert!(bucket < N_LINEAR || (bound - below) * 4 <= bound, "a quantile is off by a quarter");
            below = bound;
        }
        assert_eq!(upper_bound_ns(N_BUCKETS - 1), None);
        assert_eq!((bucket_of(0), bucket_of(u64::MAX)), (0, N_BUCKETS - 1));
        assert!(below >= 50_000 << (2 * (N_PAGE_BOUNDS - 1)), "the page's bounds are all finite here");
    }

    #[test]
    fn the_bounds_of_the_page_are_inclusive() {
        let histogram = Histogram::default();
        for ns in [0, 50_000, 50_001, 200_000, 10_u64.pow(13)] {
            histogram.observe(Duration::from_nanos(ns));
        }
        let view = histogram.view();
        let buckets = view.page_buckets();
        assert_eq!((buckets[0], buckets[1]), ((0.000_05, 2), (0.000_2, 2)));
        assert_eq!(buckets.last(), Some(&(f64::INFINITY, 1)));
        assert_eq!(buckets.iter().map(|(_, n)| n).sum::<u64>(), view.count());
        assert!((view.sum_seconds() - 10_000.000_300_001).abs() < 1e-6);
        let pairs = serde_json::to_string(&view).unwrap();
        assert_eq!(pairs, "[[3125,1],[50000,1],[62500,1],[200000,1],[0,1]]");
    }
}

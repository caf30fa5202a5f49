//! The counters of one plugin's work queue and reconciler, with the meaning of client-go and
//! controller-runtime.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use once_cell::race::OnceBox;

use super::histogram::{Histogram, HistogramView};

/// Counts what happens to the keys of a plugin's work queue.
#[derive(Debug, Default)]
pub(crate) struct KeyMetrics {
    added: AtomicU64,
    retried: AtomicU64,
    waited: OnceBox<Histogram>,
    worked: OnceBox<Histogram>,
}

/// Counts the calls of `reconcile` whose end is no plain success or failure.
#[derive(Debug, Default)]
pub(crate) struct ReconcileMetrics {
    requeued: AtomicU64,
    terminal: AtomicU64,
    trapped: AtomicU64,
    timed_out: AtomicU64,
    /// Calls that lost the instance, for these or other reasons.
    lost: AtomicU64,
}

/// How the calls of `reconcile` ended.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct ReconcileCounts {
    pub(crate) succeeded: u64,
    pub(crate) requeued: u64,
    pub(crate) failed: u64,
    /// Failures that the plugin called terminal.
    pub(crate) terminal: u64,
    /// Failures that were traps.
    pub(crate) trapped: u64,
    /// Failures that exceeded the deadline.
    pub(crate) timed_out: u64,
}

// === impl KeyMetrics ===

impl KeyMetrics {
    pub(super) fn add(&self) {
        self.added.fetch_add(1, Relaxed);
    }

    pub(super) fn retry(&self) {
        self.retried.fetch_add(1, Relaxed);
    }

    pub(super) fn waited(&self, duration: Duration) {
        self.waited.get_or_init(Box::default).observe(duration);
    }

    pub(super) fn worked(&self, duration: Duration) {
        self.worked.get_or_init(Box::default).observe(duration);
    }

    pub(crate) fn added(&self) -> u64 {
        self.added.load(Relaxed)
    }

    pub(crate) fn retried(&self) -> u64 {
        self.retried.load(Relaxed)
    }

    pub(crate) fn waited_view(&self) -> HistogramView {
        self.waited.get().map(|it| it.view()).unwrap_or_default()
    }

    pub(crate) fn worked_view(&self) -> HistogramView {
        self.worked.get().map(|it| it.view()).unwrap_or_default()
    }
}

// === impl ReconcileMetrics ===

impl ReconcileMetrics {
    pub(super) fn requeued(&self) {
        self.requeued.fetch_add(1, Relaxed);
    }

    pub(super) fn terminal(&self) {
        self.terminal.fetch_add(1, Relaxed);
    }

    /// Counts one call that lost the instance.
    pub(super) fn lost(&self, reason: &str) {
        self.lost.fetch_add(1, Relaxed);
        match reason {
            "trap" => self.trapped.fetch_add(1, Relaxed),
            "deadline" => self.timed_out.fetch_add(1, Relaxed),
            _ => 0,
        };
    }

    /// Returns the counts. Of the calls that returned, so many are done, and so many failed.
    pub(super) fn counts(&self, done: u64, failed: u64) -> ReconcileCounts {
        let requeued = self.requeued.load(Relaxed);
        ReconcileCounts {
            // The two counters are not read at one time.
            succeeded: done.saturating_sub(requeued),
            requeued,
            failed: failed + self.lost.load(Relaxed),
            terminal: self.terminal.load(Relaxed),
            trapped: self.trapped.load(Relaxed),
            timed_out: self.timed_out.load(Relaxed),
        }
    }
}

//! The metrics of work queues.

use std::sync::Arc;
use std::time::Duration;

use crate::user_function::{self, UserFunction};

/// The period of [`WorkQueue::report_unfinished`](super::WorkQueue::report_unfinished).
pub const UNFINISHED_PERIOD: Duration = Duration::from_millis(500);

/// Provides metrics for each named queue.
pub trait MetricsProvider {
    /// Returns the metrics of the queue with this name.
    fn metrics(&self, queue: &str) -> Arc<dyn WorkQueueMetrics>;
}

/// Receives the metrics of a work queue, under its lock. The methods must be fast; by default they do
/// nothing.
pub trait WorkQueueMetrics: Send + Sync {
    /// A key was added.
    fn added(&self) {}
    /// The number of waiting keys, with the keys in process that will run again.
    fn depth(&self, depth: usize) {
        let _ = depth;
    }
    /// A worker got a key, this long after it was added.
    fn waited(&self, duration: Duration) {
        let _ = duration;
    }
    /// The processing of a key ended.
    fn worked(&self, duration: Duration) {
        let _ = duration;
    }
    /// A key was added with a delay.
    fn retried(&self) {}
    /// The processing times of the keys in process: the sum and the longest.
    fn unfinished(&self, together: Duration, longest: Duration) {
        let _ = (together, longest);
    }
}

/// Drops all metrics.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoMetrics;

/// Calls a receiver and catches its panics, which would interrupt a change of the queue.
pub(super) struct CaughtMetrics(pub(super) Arc<dyn WorkQueueMetrics>);

// === impl NoMetrics ===

impl WorkQueueMetrics for NoMetrics {}

// === impl CaughtMetrics ===

impl CaughtMetrics {
    fn call(&self, call: impl FnOnce(&dyn WorkQueueMetrics)) {
        let _ = user_function::call(UserFunction::Metrics, &"a work queue", || call(&*self.0));
    }
}

impl WorkQueueMetrics for CaughtMetrics {
    fn added(&self) {
        self.call(|metrics| metrics.added());
    }

    fn depth(&self, depth: usize) {
        self.call(|metrics| metrics.depth(depth));
    }

    fn waited(&self, duration: Duration) {
        self.call(|metrics| metrics.waited(duration));
    }

    fn worked(&self, duration: Duration) {
        self.call(|metrics| metrics.worked(duration));
    }

    fn retried(&self) {
        self.call(|metrics| metrics.retried());
    }

    fn unfinished(&self, together: Duration, longest: Duration) {
        self.call(|metrics| metrics.unfinished(together, longest));
    }
}

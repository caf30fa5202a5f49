//! Who is told what happens in work queues.

use std::sync::Arc;
use std::time::Duration;

use crate::user_function::{self, UserFunction};

/// How often [`WorkQueue::report_unfinished`](super::WorkQueue::report_unfinished) tells of unfinished work.
pub const UNFINISHED_PERIOD: Duration = Duration::from_millis(500);

/// Has metrics for each queue that has a name.
pub trait MetricsProvider {
    /// Returns the metrics of the queue with that name.
    fn metrics(&self, queue: &str) -> Arc<dyn WorkQueueMetrics>;
}

/// Is told what happens in a work queue, while the queue is locked: it must be quick. Every method does nothing unless said otherwise.
pub trait WorkQueueMetrics: Send + Sync {
    /// A key was added that was not waiting.
    fn added(&self) {}
    /// How many keys wait, with those that are worked on and will run again.
    fn depth(&self, depth: usize) {
        let _ = depth;
    }
    /// A key was handed out, so long after it was first added.
    fn waited(&self, duration: Duration) {
        let _ = duration;
    }
    /// Work on a key ended, after so long.
    fn worked(&self, duration: Duration) {
        let _ = duration;
    }
    /// A key was added for later.
    fn retried(&self) {}
    /// For how long the keys that are worked on have been, together and the longest.
    fn unfinished(&self, together: Duration, longest: Duration) {
        let _ = (together, longest);
    }
}

/// Tells nobody.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoMetrics;

/// Tells somebody, whose panics have been counted and logged: they come in the middle of a change of the queue.
pub(super) struct Told(pub(super) Arc<dyn WorkQueueMetrics>);

// === impl NoMetrics ===

impl WorkQueueMetrics for NoMetrics {}

// === impl Told ===

impl Told {
    fn tell(&self, tell: impl FnOnce(&dyn WorkQueueMetrics)) {
        let _ = user_function::call(UserFunction::Metrics, &"a work queue", || tell(&*self.0));
    }
}

impl WorkQueueMetrics for Told {
    fn added(&self) {
        self.tell(|metrics| metrics.added());
    }

    fn depth(&self, depth: usize) {
        self.tell(|metrics| metrics.depth(depth));
    }

    fn waited(&self, duration: Duration) {
        self.tell(|metrics| metrics.waited(duration));
    }

    fn worked(&self, duration: Duration) {
        self.tell(|metrics| metrics.worked(duration));
    }

    fn retried(&self) {
        self.tell(|metrics| metrics.retried());
    }

    fn unfinished(&self, together: Duration, longest: Duration) {
        self.tell(|metrics| metrics.unfinished(together, longest));
    }
}

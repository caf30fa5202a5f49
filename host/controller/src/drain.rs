//! The calls that end while the host stops: how long they may take, and how many did not end.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::watch;

/// Counts the dispatchers that run. Cheap to clone: clones share the counts.
#[derive(Clone, Debug)]
pub(crate) struct Drain {
    timeout: Duration,
    running: Arc<watch::Sender<usize>>,
    n_dropped: Arc<AtomicU64>,
}

/// A dispatcher that runs, until this is dropped.
#[derive(Debug)]
pub(crate) struct Running(Arc<watch::Sender<usize>>);

// === impl Drain ===

impl Drain {
    /// Gives calls so much time after the host has asked their plugin to stop.
    pub(crate) fn new(timeout: Duration) -> Self {
        Self { timeout, running: Arc::new(watch::Sender::new(0)), n_dropped: Arc::default() }
    }

    /// Returns how long calls may take.
    pub(crate) fn timeout(&self) -> Duration {
        self.timeout
    }

    /// Notes that a dispatcher runs.
    pub(crate) fn begin(&self) -> Running {
        self.running.send_modify(|count| *count += 1);
        Running(self.running.clone())
    }

    /// Notes calls that did not end in time.
    pub(crate) fn dropped(&self, calls: usize) {
        self.n_dropped.fetch_add(calls as u64, Ordering::Relaxed);
    }

    /// Returns how many calls did not end in time.
    pub(crate) fn n_dropped(&self) -> u64 {
        self.n_dropped.load(Ordering::Relaxed)
    }

    /// Waits until no dispatcher runs. All of them end in time by themselves, after the host was asked to.
    pub(crate) async fn ended(&self) {
        // The sender lives as long as `self`.
        let _ = self.running.subscribe().wait_for(|count| *count == 0).await;
    }
}

// === impl Running ===

impl Drop for Running {
    fn drop(&mut self) {
        self.0.send_modify(|count| *count -= 1);
    }
}

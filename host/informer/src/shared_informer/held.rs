//! From which source everything is that the cache holds.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use tokio::sync::watch;

/// Follows a whole list from the queue into the cache.
///
/// Reflector and pop loop are parts of one future, so no two calls overlap.
pub(super) struct Held {
    /// The source that the reflector is at.
    current: AtomicU64,
    /// How many keys are to be popped until the newest whole list is in the cache, and of which source it is.
    remaining: AtomicUsize,
    listed: AtomicU64,
    held: watch::Sender<u64>,
}

// === impl Held ===

impl Held {
    pub(super) fn new() -> Self {
        Self {
            current: AtomicU64::new(0),
            remaining: AtomicUsize::new(0),
            listed: AtomicU64::new(0),
            held: watch::channel(0).0,
        }
    }

    /// What is queued from now on is of this source.
    pub(super) fn source_changed(&self, number: u64) {
        self.current.store(number, Ordering::Relaxed);
    }

    /// A whole list was queued, and with it so many keys wait.
    pub(super) fn listed(&self, n_queued: usize) {
        self.listed.store(self.current.load(Ordering::Relaxed), Ordering::Relaxed);
        self.remaining.store(n_queued, Ordering::Relaxed);
        if n_queued == 0 {
            self.reached();
        }
    }

    /// A key was popped and processed.
    pub(super) fn popped(&self) {
        let remaining = self.remaining.load(Ordering::Relaxed);
        if remaining > 0 {
            self.remaining.store(remaining - 1, Ordering::Relaxed);
            if remaining == 1 {
                self.reached();
            }
        }
    }

    /// The source of the last whole list that is in the cache, as it is and as it changes.
    pub(super) fn subscribe(&self) -> watch::Receiver<u64> {
        self.held.subscribe()
    }

    fn reached(&self) {
        let listed = self.listed.load(Ordering::Relaxed);
        self.held.send_if_modified(|held| std::mem::replace(held, listed) != listed);
    }
}

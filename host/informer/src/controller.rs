//! The machinery with nothing on top: a reflector fills a queue, a callback gets what comes out of it.
//!
//! What [`SharedInformer`](crate::SharedInformer) does for many listeners, this does for whoever wants to put the parts together by
//! hand. No cache belongs to it: the callback keeps what it likes. [`Informer`] is the smallest thing with a cache.

mod informer;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::task::coop;
use tokio_util::sync::CancellationToken;

use crate::delta_fifo::{DeltaFifo, Deltas, Processed};
use crate::list_watch::ListWatch;
use crate::names::ObjectKey;
use crate::reflector::{self, Reflector};

pub use self::informer::{Informer, Store, process_deltas};

/// Why the callback could not process deltas.
pub type ProcessError = Box<dyn std::error::Error + Send + Sync>;

/// A reflector and the queue that it fills.
pub struct Controller {
    fifo: Arc<DeltaFifo>,
    reflector: Reflector,
    has_started: AtomicBool,
}

/// Closes the queue when the controller's future ends, be it by being dropped.
struct CloseOnDrop<'f>(&'f DeltaFifo);

// === impl Controller ===

impl Controller {
    /// Makes a controller that does nothing until it is run.
    #[must_use]
    pub fn new(list_watch: Arc<dyn ListWatch>, fifo: Arc<DeltaFifo>, config: reflector::Config) -> Self {
        let reflector = Reflector::new(list_watch, fifo.clone(), config);
        Self { fifo, reflector, has_started: AtomicBool::new(false) }
    }

    /// Runs the reflector, and gives what comes out of the queue to `process`, a list of deltas at a time, in order, until the token
    /// is cancelled. Then the queue is closed, and what it still holds is not processed.
    ///
    /// `process` is called while the queue is locked, with whether the first list had not been processed whole: it must be quick, and
    /// must not touch the queue. When it fails, that is logged, its deltas are lost and the next are processed; when it panics, so
    /// does this future. A controller runs once; a second call logs and returns.
    pub async fn run<F>(&self, token: &CancellationToken, process: F)
    where
        F: FnMut(&ObjectKey, &Deltas, bool) -> Result<Processed, ProcessError>,
    {
        if self.has_started.swap(true, Ordering::Relaxed) {
            tracing::warn!("the controller has been started before");
            return;
        }
        let _close = CloseOnDrop(&self.fifo);
        let reflect = async {
            self.reflector.run(token).await;
            self.fifo.close();
        };
        tokio::join!(reflect, self.pop_until(token, process));
    }

    /// Whether the first list has been processed whole.
    #[must_use]
    pub fn has_synced(&self) -> bool {
        self.fifo.has_synced()
    }

    /// Returns the last version that the reflector saw; empty before the first list.
    #[must_use]
    pub fn last_resource_version(&self) -> String {
        self.reflector.last_resource_version()
    }

    async fn pop_until<F>(&self, token: &CancellationToken, mut process: F)
    where
        F: FnMut(&ObjectKey, &Deltas, bool) -> Result<Processed, ProcessError>,
    {
        while !token.is_cancelled() {
            let popped = self.fifo.pop(|key, deltas, is_in_initial_list| {
                process(key, deltas, is_in_initial_list).unwrap_or_else(|error| {
                    tracing::warn!(%key, error = &*error, "deltas were not processed");
                    Processed::Done
                })
            });
            tokio::select! {
                biased;
                () = token.cancelled() => return,
                popped = popped => if popped.is_err() { return },
            }
            // A full queue must not keep the reflector, which is part of the same task, from reading its connection.
            coop::consume_budget().await;
        }
    }
}

// === impl CloseOnDrop ===

impl Drop for CloseOnDrop<'_> {
    fn drop(&mut self) {
        let Self(fifo) = self;
        fifo.close();
    }
}

#[cfg(test)]
mod tests;

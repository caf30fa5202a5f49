//! A reflector, a queue and a callback: client-go's low-level Controller.
//!
//! A [`Controller`] has no cache: the callback receives the deltas and may store objects. [`Informer`] adds a
//! cache and one handler. [`SharedInformer`](crate::SharedInformer) has a cache and many listeners, and does
//! not use this module.

mod informer;

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::task::coop;
use tokio_util::sync::CancellationToken;

use crate::delta_fifo::{DeltaFifo, Deltas, Processed};
use crate::list_watch::ListWatch;
use crate::names::ObjectKey;
use crate::reflector::{self, Reflector};
use crate::repolled::repolled;

pub use self::informer::{Informer, Store, process_deltas};

/// The callback failed to process deltas.
pub type ProcessError = Box<dyn std::error::Error + Send + Sync>;

/// A reflector and the queue that it writes to.
pub struct Controller {
    fifo: Arc<DeltaFifo>,
    reflector: Reflector,
    has_started: AtomicBool,
}

/// Closes the queue when the controller's future ends or is dropped.
struct CloseOnDrop<'f>(&'f DeltaFifo);

// === impl Controller ===

impl Controller {
    /// Returns a controller that does nothing until it is run.
    #[must_use]
    pub fn new(list_watch: Arc<dyn ListWatch>, fifo: Arc<DeltaFifo>, config: reflector::Config) -> Self {
        let reflector = Reflector::new(list_watch, fifo.clone(), config);
        Self { fifo, reflector, has_started: AtomicBool::new(false) }
    }

    /// Runs the reflector and calls `process` with the deltas of each popped key, in order, until the token
    /// is cancelled. Then the queue is closed, and the keys in it are not processed.
    ///
    /// `process` is called while the queue is locked: it must return soon and must not use the queue. Its
    /// flag is true while the first list has not been processed whole. If it fails, the error is logged and
    /// its deltas are dropped; if it panics, this future panics. A controller runs once; a second call logs
    /// and returns.
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
        let both = pin!(async { tokio::join!(reflect, self.pop_until(token, process)) });
        repolled(both).await;
    }

    /// Returns whether the first list has been processed whole.
    #[must_use]
    pub fn has_synced(&self) -> bool {
        self.fifo.has_synced()
    }

    /// Returns the last resourceVersion that the reflector received; empty before the first list.
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
                    tracing::warn!(%key, error = &*error, "the callback failed; its deltas are dropped");
                    Processed::Done
                })
            });
            tokio::select! {
                biased;
                () = token.cancelled() => return,
                popped = popped => if popped.is_err() { return },
            }
            // A full queue must not keep the reflector, which is part of the same task, from reading its
            // connection.
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

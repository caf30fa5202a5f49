//! The parts of an informer, and its loops.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Notify, Semaphore};
use tokio::task::coop;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::Config;
use super::settings::{Set, Settings};
use super::store::InformerStore;
use crate::delta_fifo::{self, DeltaFifo, Deltas, KnownObjects, Watermark};
use crate::indexer::{Compactor, Indexer, IndexerWriter};
use crate::list_watch::ListWatch;
use crate::processor::{DeltaHandler, Processor, SLICE};
use crate::reflector::{Reflector, Source, Sources, StatusPublisher};
use crate::repolled::repolled;

/// How often the cache is compacted while objects are written.
const COMPACT_PERIOD: Duration = Duration::from_millis(250);

/// The parts of an informer, which all of its handles share.
pub(super) struct Core {
    pub(super) config: Config,
    pub(super) sources: Sources,
    pub(super) settings: Settings,
    /// The status of the reflector, which is made when the informer starts.
    pub(super) reflector_status: Arc<StatusPublisher>,
    pub(super) fifo: Arc<DeltaFifo>,
    pub(super) indexer: Indexer,
    pub(super) processor: Arc<Processor>,
    pub(super) compactor: Arc<Compactor>,
    /// Wakes the compaction when objects are written again.
    pub(super) written: Notify,
}

/// Stops the informer when its future ends or is dropped.
struct StopOnDrop<'c>(&'c Core);

// === impl Core ===

impl Core {
    pub(super) fn new(list_watch: Arc<dyn ListWatch>, config: Config) -> Self {
        let mut writer = IndexerWriter::new();
        writer.limit_indices(config.index_limits);
        let indexer = writer.indexer().clone();
        let compactor = Arc::new(Compactor::new(indexer.clone(), config.hot_bytes));
        // The store of the reflector transforms objects before it queues them.
        let fifo = Arc::new(DeltaFifo::new(delta_fifo::Config {
            known_objects: Some(Arc::new(indexer.clone()) as Arc<dyn KnownObjects>),
            ..delta_fifo::Config::default()
        }));
        let settings = Settings::new(Set {
            transformer: config.transformer.clone(),
            watch_error_handler: config.reflector.watch_error_handler.clone(),
        });
        let processor = Processor::new(writer, fifo.clone(), config.resync_period());
        let source = Source { list_watch: Some(list_watch), type_meta: config.reflector.type_meta.clone() };
        Self {
            config,
            sources: Sources::new(source),
            settings,
            reflector_status: Arc::new(StatusPublisher::new()),
            fifo,
            indexer,
            processor: Arc::new(processor),
            compactor,
            written: Notify::new(),
        }
    }

    /// See [`SharedInformer::run`](super::SharedInformer::run).
    pub(super) async fn run(&self, token: &CancellationToken) {
        let Some(resync_period) = self.processor.start() else {
            tracing::warn!(resource = %self.config.resource, "the informer has been started before");
            return;
        };
        let _stop = StopOnDrop(self);
        let reflector = self.reflector(resync_period);
        let reflect = async {
            reflector.run(token).await;
            self.fifo.close();
        };
        let both = pin!(async { tokio::join!(reflect, self.pop_until(token)) });
        tokio::select! {
            biased;
            ((), ()) = repolled(both) => {}
            // Unconstrained, since the arm above uses up the budget of a poll for as long as events keep
            // coming.
            () = coop::unconstrained(self.notify_of_sync()) => {}
            () = self.compact_forever() => {}
        }
    }

    /// Returns the reflector. It is made at the start, since listeners may shorten its resync period.
    fn reflector(&self, resync_period: Duration) -> Reflector {
        let Set { transformer, watch_error_handler } = self.settings.take();
        let store = InformerStore {
            fifo: self.fifo.clone(),
            transformer,
            processor: self.processor.clone(),
            publisher: self.config.publisher.clone(),
            compactor: self.compactor.clone(),
        };
        let mut config = self.config.reflector.clone();
        config.resync_period = (!resync_period.is_zero()).then_some(resync_period);
        config.watch_error_handler = watch_error_handler;
        config.description.get_or_insert_with(|| self.config.resource.to_string());
        Reflector::publishing_to(self.reflector_status.clone(), self.sources.clone(), Arc::new(store), config)
    }

    /// Moves queued changes into the cache and to the listeners. Changes that are queued when the token is
    /// cancelled are dropped.
    pub(super) async fn pop_until(&self, token: &CancellationToken) {
        let mut handler = DeltaHandler::new(self.processor.clone());
        while !token.is_cancelled() {
            let popped = match self.fifo.try_pop_some(|_, deltas, is_in_initial_list| {
                self.handle(&mut handler, deltas, is_in_initial_list)
            }) {
                Ok(true) => Ok(()),
                Ok(false) => tokio::select! {
                    biased;
                    () = token.cancelled() => return,
                    () = self.processor.registrations_changed.notified() => {
                        handler.plan_if_due();
                        if self.processor.free_kept() {
                            self.processor.registrations_changed.notify_one();
                            tokio::task::yield_now().await;
                        }
                        continue;
                    }
                    popped = self.fifo.pop_some(|_, deltas, is_in_initial_list| {
                        self.handle(&mut handler, deltas, is_in_initial_list)
                    }) => popped,
                },
                Err(closed) => Err(closed),
            };
            if popped.is_err() {
                return;
            }
            if handler.is_matching() {
                self.continue_matching(&mut handler, token).await;
                continue;
            }
            if let Some(publisher) = &self.config.publisher {
                publisher.queued(&self.fifo);
            }
            if self.compactor.wake() {
                self.written.notify_one();
            }
            if self.compactor.is_over_budget() {
                self.compactor.compact_slice();
            }
            // A full queue must not keep the reflector, which is part of the same task, from reading its
            // connection.
            coop::consume_budget().await;
        }
    }

    /// Handles the deltas of one key; returns how many were handled.
    fn handle(&self, handler: &mut DeltaHandler, deltas: &Deltas, is_in_initial_list: bool) -> usize {
        let Some(publisher) = &self.config.publisher else {
            return handler.handle_some(deltas, is_in_initial_list, SLICE);
        };
        let begun_at = Instant::now();
        let n_handled = handler.handle_some(deltas, is_in_initial_list, SLICE);
        if n_handled > 0 {
            publisher.processed(begun_at.elapsed(), &self.indexer);
        }
        n_handled
    }

    /// Continues to match a change that takes long, in slices of work. The change is applied when its key is
    /// popped next.
    async fn continue_matching(&self, handler: &mut DeltaHandler, token: &CancellationToken) {
        loop {
            // Other tasks of this worker, and the reflector, run between two slices.
            tokio::task::yield_now().await;
            if token.is_cancelled() || !handler.match_some(SLICE) {
                return;
            }
        }
    }

    /// Notifies the listeners once the first list was processed.
    async fn notify_of_sync(&self) {
        // The queue outlives this future, so its watermark is not closed.
        let _ = self.fifo.watermark().wait_for(Watermark::has_synced).await;
        self.processor.informer_has_synced();
        std::future::pending().await
    }

    /// Compacts the cache in slices of work; events from the API server go first.
    async fn compact_forever(&self) {
        loop {
            while self.compactor.is_idle() {
                self.written.notified().await;
            }
            tokio::time::sleep(COMPACT_PERIOD).await;
            self.compactor.tick();
            self.train_if_due().await;
            while self.compactor.compact_slice() {
                if self.compactor.compresses_worse() {
                    self.train_if_due().await;
                }
                tokio::task::yield_now().await;
            }
        }
    }

    /// Trains a dictionary on a thread for blocking work, if that is due: it takes too long for a worker. One
    /// informer at a time does, since the samples take memory.
    async fn train_if_due(&self) {
        static TURN: Semaphore = Semaphore::const_new(1);
        if self.compactor.due_training().is_none() {
            return;
        }
        // The semaphore is never closed.
        let _turn = TURN.acquire().await;
        let Some(due) = self.compactor.due_training() else { return };
        match tokio::task::spawn_blocking(|| due.train()).await {
            Ok(trained) => self.compactor.end_training(trained),
            Err(error) => match error.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                // The runtime is ending.
                Err(_) => std::future::pending().await,
            },
        }
    }
}

// === impl StopOnDrop ===

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        let Self(core) = self;
        core.fifo.close();
        core.processor.stop();
    }
}

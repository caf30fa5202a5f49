//! What an informer is made of, and its loops.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Notify, watch};
use tokio::task::coop;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::held::Held;
use super::settings::{Set, Settings};
use super::store::InformerStore;
use super::{Config, Lifecycle};
use crate::delta_fifo::{self, DeltaFifo, Deltas, KnownObjects};
use crate::indexer::{Compactor, Indexer, IndexerWriter};
use crate::list_watch::ListWatch;
use crate::names::ObjectKey;
use crate::processor::{Processor, SLICE};
use crate::reflector::{Reflector, Source, Sources, StatusPublisher};

/// How often the cache is looked at for what can be compressed, while anything is written.
const SWEEP_PERIOD: Duration = Duration::from_millis(250);

/// All that the handles of one informer share.
pub(super) struct Core {
    pub(super) config: Config,
    pub(super) sources: Sources,
    pub(super) held: Arc<Held>,
    pub(super) settings: Settings,
    /// What the reflector, which is made when the informer starts, reports about itself.
    pub(super) reflector_status: Arc<StatusPublisher>,
    pub(super) fifo: Arc<DeltaFifo>,
    pub(super) indexer: Indexer,
    pub(super) processor: Arc<Processor>,
    pub(super) compactor: Arc<Compactor>,
    /// Wakes the sweeping when something is written again.
    pub(super) swept: Notify,
    pub(super) lifecycle: watch::Sender<Lifecycle>,
}

/// Stops the informer when its future ends, be it by being dropped.
struct StopOnDrop<'c>(&'c Core);

// === impl Core ===

impl Core {
    pub(super) fn new(list_watch: Arc<dyn ListWatch>, config: Config) -> Self {
        let mut writer = IndexerWriter::new();
        writer.limit_indices(config.index_limits);
        let indexer = writer.indexer().clone();
        let compactor = Arc::new(Compactor::new(indexer.clone(), config.hot_bytes));
        let fifo = DeltaFifo::new(delta_fifo::Config {
            known_objects: Some(Arc::new(indexer.clone()) as Arc<dyn KnownObjects>),
            ..delta_fifo::Config::default()
        });
        let settings = Settings::new(Set {
            transformer: config.transformer.clone(),
            watch_error_handler: config.reflector.watch_error_handler.clone(),
        });
        let processor = Processor::new(writer, config.resync_period());
        let source = Source { list_watch: Some(list_watch), type_meta: config.reflector.type_meta.clone() };
        Self {
            config,
            sources: Sources::new(source),
            held: Arc::new(Held::new()),
            settings,
            reflector_status: Arc::new(StatusPublisher::new()),
            fifo: Arc::new(fifo),
            indexer,
            processor: Arc::new(processor),
            compactor,
            swept: Notify::new(),
            lifecycle: watch::channel(Lifecycle::Created).0,
        }
    }

    /// See [`SharedInformer::run`](super::SharedInformer::run).
    pub(super) async fn run(&self, token: &CancellationToken) {
        let was_started = !self.lifecycle.send_if_modified(|lifecycle| {
            let is_new = *lifecycle == Lifecycle::Created;
            if is_new {
                *lifecycle = Lifecycle::Started;
            }
            is_new
        });
        if was_started {
            tracing::warn!(resource = %self.config.resource, "the informer has been started before");
            return;
        }
        let _stop = StopOnDrop(self);
        let reflector = self.start_reflector();
        let reflect = async {
            reflector.run(token).await;
            self.fifo.close();
        };
        tokio::select! {
            biased;
            ((), ()) = async { tokio::join!(reflect, self.pop_until(token)) } => {}
            () = self.sweep_forever() => {}
        }
    }

    /// Makes the reflector: the listeners have a say in its resync period.
    fn start_reflector(&self) -> Reflector {
        let Set { transformer, watch_error_handler } = self.settings.seal();
        if let Some(transformer) = transformer {
            self.fifo.set_transformer(transformer);
        }
        let resync_period = self.processor.start();
        let store = InformerStore {
            publisher: self.config.publisher.clone(),
            fifo: self.fifo.clone(),
            processor: self.processor.clone(),
            held: self.held.clone(),
            compactor: self.compactor.clone(),
        };
        let resync_period = (!resync_period.is_zero()).then_some(resync_period);
        let mut config = self.config.reflector.clone();
        config.resync_period = resync_period;
        config.watch_error_handler = watch_error_handler;
        config.description.get_or_insert_with(|| self.config.resource.to_string());
        Reflector::publishing_to(self.reflector_status.clone(), self.sources.clone(), Arc::new(store), config)
    }

    /// Moves what is queued into the cache and to the listeners. What is still queued when the token is cancelled stays there.
    pub(super) async fn pop_until(&self, token: &CancellationToken) {
        let mut has_told_sync = false;
        let publisher = self.config.publisher.as_ref();
        let process = |_: &ObjectKey, deltas: &Deltas, is_in_initial_list: bool| {
            let begun_at = publisher.map(|_| Instant::now());
            let n_done = self.processor.process_some(deltas, is_in_initial_list, SLICE);
            if let (Some(publisher), Some(begun_at)) = (publisher, begun_at)
                && n_done > 0
            {
                publisher.processed(begun_at.elapsed(), &self.indexer);
            }
            n_done
        };
        while !token.is_cancelled() {
            let popped = match self.fifo.try_pop_some(process) {
                Ok(true) => Ok(()),
                Ok(false) => tokio::select! {
                    biased;
                    () = token.cancelled() => return,
                    popped = self.fifo.pop_some(process) => popped,
                },
                Err(closed) => Err(closed),
            };
            if popped.is_err() {
                return;
            }
            if self.processor.is_matching() {
                self.match_on(token).await;
                continue;
            }
            self.held.popped();
            if let Some(publisher) = publisher {
                publisher.queued(&self.fifo);
            }
            if !has_told_sync && self.fifo.has_synced() {
                has_told_sync = true;
                self.processor.informer_has_synced();
            }
            if self.compactor.wake() {
                self.swept.notify_one();
            }
            if self.compactor.is_over_budget() {
                self.compactor.compact_slice();
            }
            // A full queue must not keep the reflector, which is part of the same task, from reading its connection.
            coop::consume_budget().await;
        }
    }

    /// Goes on with the matching of a change that takes long, a slice of work at a time; it is applied when it is popped next.
    async fn match_on(&self, token: &CancellationToken) {
        loop {
            // Others of this worker, and the reflector, go first.
            tokio::task::yield_now().await;
            if token.is_cancelled() || !self.processor.match_some(SLICE) {
                return;
            }
        }
    }

    /// Keeps the cache small, a slice of work at a time: what comes from the API server goes first.
    async fn sweep_forever(&self) {
        loop {
            while self.compactor.is_idle() {
                self.swept.notified().await;
            }
            tokio::time::sleep(SWEEP_PERIOD).await;
            self.compactor.tick();
            while self.compactor.compact_slice() {
                tokio::task::yield_now().await;
            }
        }
    }
}

// === impl StopOnDrop ===

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        let Self(core) = self;
        core.fifo.close();
        core.processor.stop();
        core.lifecycle.send_replace(Lifecycle::Stopped);
    }
}

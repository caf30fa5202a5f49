//! One list, one watch and one cache of a resource, shared by everyone who wants to know of it.
//!
//! [`SharedInformer::run`] is the whole machine in one future: the reflector fills the delta queue, the pop loop empties it
//! into the cache and then tells the listeners. What a user may rely on:
//!
//! - **Eventual consistency.** The cache and every listener come to the state that the API server has, whatever happens to
//!   the connection. A listener that is slow is told less often, never wrongly.
//! - **The cache first.** When a listener is told of a state, the cache holds it or a later one.
//! - **One story per object**, as [`listener`](crate::listener) says; nothing is promised between objects, nor between listeners.
//! - **Late listeners are told everything**: what the cache holds at the moment of registration comes as initial adds, what
//!   happens from that moment on follows. Nothing is missed and nothing is told twice.
//! - **Nobody waits for a listener.** The cache goes on whatever its consumer does; what waits for it is bounded.
//! - **Objects are shared** and cannot be changed.

mod handlers;
mod held;
mod settings;
mod status;
mod store;

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio::sync::{Notify, watch};
use tokio::task::coop;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::delta_fifo::{self, DeltaFifo, Deltas, KnownObjects, Processed, Transformer};
use crate::indexer::{self, IndexSource, Indexer, IndexerWriter, Limits, Sweeper};
use crate::informer_metrics::Publisher;
use crate::list_watch::ListWatch;
use crate::listener::{Listener, ListenerConfig};
use crate::lister::Lister;
use crate::names::{GroupVersionResource, ObjectKey};
use crate::processor::Processor;
use crate::reflector::{self, Phase, Reflector, ReflectorStatus, Source, Sources};
use crate::resource_version::{NotComparable, ResourceVersion};

use self::held::Held;
pub use self::settings::AlreadyStarted;
use self::settings::{Set, Settings};
pub use self::status::InformerStatus;
use self::store::InformerStore;

/// How often the cache is looked at for what can be compressed, while anything is written.
const SWEEP_PERIOD: Duration = Duration::from_millis(250);

/// How an informer is made.
#[derive(Clone)]
pub struct Config {
    /// The resource, for names in logs and errors.
    pub resource: GroupVersionResource,
    /// How it lists, watches and waits after failures. Its `resync_period` does not count, the one below does.
    pub reflector: reflector::Config,
    /// How often the informer looks whether a listener is due to be told everything again, and the period of listeners that do
    /// not say otherwise. A listener added before the start that wants less makes it less. Zero: no listener ever is.
    pub resync_period: Duration,
    /// Changes every object on its way in; [`SharedInformer::set_transformer`] can still say otherwise.
    pub transformer: Option<Transformer>,
    /// Where the informer publishes its figures, if anywhere.
    pub publisher: Option<Publisher>,
    /// How many bytes of objects' text the cache keeps as they are at most, which is what came last. All others, and what was not
    /// replaced for about a second, are compressed.
    pub hot_bytes: usize,
    /// What each index may take.
    pub index_limits: Limits,
}

/// A handle on an informer; clones are handles on the same one. See the module's words for what it promises.
#[derive(Clone)]
pub struct SharedInformer {
    core: Arc<Core>,
}

/// Why a listener was not added.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("listener {listener:?} was not added to shared informer because it has stopped already")]
pub struct Stopped {
    /// The listener's name.
    pub listener: String,
}

/// Why waiting for a version ended early.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WaitError {
    /// The version asked for, or the one that the API server uses, is not a number.
    #[error(transparent)]
    NotComparable(#[from] NotComparable),
    /// The informer stopped.
    #[error("the informer has stopped")]
    Stopped,
}

/// An informer is started once and stopped once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Lifecycle {
    /// It does not run yet.
    Created,
    /// It runs.
    Started,
    /// It has run.
    Stopped,
}

struct Core {
    config: Config,
    sources: Sources,
    held: Arc<Held>,
    settings: Settings,
    /// Made when the informer starts, since the listeners have a say in its resync period.
    reflector: OnceLock<Reflector>,
    fifo: Arc<DeltaFifo>,
    indexer: Indexer,
    processor: Arc<Processor>,
    sweeper: Arc<Sweeper>,
    /// Wakes the sweeping when something is written again.
    swept: Notify,
    phase: watch::Sender<Phase>,
    lifecycle: watch::Sender<Lifecycle>,
}

/// Stops the informer when its future ends, be it by being dropped.
struct StopOnDrop<'c>(&'c Core);

// === impl Config ===

impl Config {
    /// Returns the usual ways, without resync.
    #[must_use]
    pub fn new(resource: GroupVersionResource) -> Self {
        Self {
            resource,
            reflector: reflector::Config::default(),
            resync_period: Duration::ZERO,
            transformer: None,
            publisher: None,
            hot_bytes: 64 << 20,
            index_limits: Limits::default(),
        }
    }
}

// === impl SharedInformer ===

impl SharedInformer {
    /// Makes an informer that does nothing until it is run.
    #[must_use]
    pub fn new(list_watch: Arc<dyn ListWatch>, config: Config) -> Self {
        let mut writer = IndexerWriter::new();
        writer.limit_indices(config.index_limits);
        let indexer = writer.indexer().clone();
        let sweeper = Arc::new(Sweeper::new(indexer.clone(), config.hot_bytes));
        let fifo = DeltaFifo::new(delta_fifo::Config {
            known_objects: Some(Arc::new(indexer.clone()) as Arc<dyn KnownObjects>),
            ..delta_fifo::Config::default()
        });
        let settings = Settings::new(Set {
            transformer: config.transformer.clone(),
            watch_error_handler: config.reflector.watch_error_handler.clone(),
        });
        let processor = Processor::new(writer, config.resync_period);
        let source = Source { list_watch: Some(list_watch), type_meta: config.reflector.type_meta.clone() };
        let core = Core {
            config,
            sources: Sources::new(source),
            held: Arc::new(Held::new()),
            settings,
            reflector: OnceLock::new(),
            fifo: Arc::new(fifo),
            indexer,
            processor: Arc::new(processor),
            sweeper,
            swept: Notify::new(),
            phase: watch::channel(Phase::Waiting).0,
            lifecycle: watch::channel(Lifecycle::Created).0,
        };
        Self { core: Arc::new(core) }
    }

    /// Runs the informer until the token is cancelled; then the reflector and the pop loop have ended, what was queued is dropped,
    /// and every listener has ended. An informer runs once; a second call logs and returns.
    ///
    /// It is one future with no tasks of its own. Dropping it stops the informer as well.
    pub async fn run(&self, token: CancellationToken) {
        let core = &*self.core;
        let was_started = !core.lifecycle.send_if_modified(|lifecycle| {
            let is_new = *lifecycle == Lifecycle::Created;
            if is_new {
                *lifecycle = Lifecycle::Started;
            }
            is_new
        });
        if was_started {
            tracing::warn!(resource = %core.config.resource, "the informer has been started before");
            return;
        }
        let _stop = StopOnDrop(core);
        let reflector = core.start_reflector();
        let reflect = async {
            reflector.run(&token).await;
            core.fifo.close();
        };
        tokio::select! {
            biased;
            ((), ()) = async { tokio::join!(reflect, core.pop_until(&token)) } => {}
            () = core.forward_phase(reflector.status()) => {}
            () = core.sweep_forever() => {}
        }
    }

    /// Whether the cache has held the whole first list. It says nothing about listeners.
    #[must_use]
    pub fn has_synced(&self) -> bool {
        self.core.fifo.has_synced()
    }

    /// Waits until [`SharedInformer::has_synced`]; answers false when the informer stopped instead.
    pub async fn wait_for_sync(&self) -> bool {
        let mut synced = self.core.fifo.synced();
        tokio::select! {
            biased;
            result = synced.wait_for(|has_synced| *has_synced) => result.is_ok(),
            () = self.stopped() => false,
        }
    }

    /// Returns the last version that the reflector saw; empty before the first list. The cache may be behind it.
    #[must_use]
    pub fn last_resource_version(&self) -> String {
        let reflector = self.core.reflector.get();
        reflector.map(|reflector| reflector.status().borrow().resource_version.clone()).unwrap_or_default()
    }

    /// Waits until the cache holds everything up to a version of this resource, such as a write returned it.
    ///
    /// It may take for ever if the version is of another resource. Cancelling the wait is harmless.
    pub async fn wait_until_seen(&self, resource_version: &str) -> Result<(), WaitError> {
        let wanted: ResourceVersion = resource_version.parse()?;
        let mut seen = self.core.fifo.seen();
        loop {
            let now = seen.borrow_and_update().clone();
            if let Some(now) = now
                && now.parse::<ResourceVersion>()? >= wanted
            {
                return Ok(());
            }
            tokio::select! {
                biased;
                changed = seen.changed() => changed.map_err(|_| WaitError::Stopped)?,
                () = self.stopped() => return Err(WaitError::Stopped),
            }
        }
    }

    /// Goes over to another source at once, and returns its number; see [`Sources`]. The cache goes over to it without a gap, and
    /// listeners are told of what is different: an object at the resourceVersion that they were told of is not.
    pub fn switch(&self, source: Source) -> u64 {
        self.core.sources.switch(source)
    }

    /// Waits until the cache is what a whole list of the source of that number (or of a later one) said, and what came since; answers false when
    /// the informer stopped instead. The number of the first source is 0.
    pub async fn wait_for_source(&self, number: u64) -> bool {
        let mut held = self.core.held.subscribe();
        let holds = async {
            // The sender is in what this handle holds.
            let _ = held.wait_for(|held| *held >= number).await;
            self.wait_for_sync().await
        };
        tokio::select! {
            biased;
            is_held = holds => is_held,
            () = self.stopped() => false,
        }
    }

    /// Returns the read half of the cache.
    #[must_use]
    pub fn indexer(&self) -> &Indexer {
        &self.core.indexer
    }

    /// Returns a lister over the cache.
    #[must_use]
    pub fn lister(&self) -> Lister {
        Lister::new(self.core.indexer.clone(), self.core.config.resource.clone())
    }

    /// Adds an index, at any time until the informer has stopped; see [`Indexer::add_index`].
    pub fn add_index(&self, name: impl Into<String>, source: IndexSource) -> Result<(), indexer::Error> {
        if self.lifecycle() == Lifecycle::Stopped {
            return Err(indexer::Error::InformerStopped(name.into()));
        }
        self.core.indexer.add_index(name, source)
    }

    /// Removes an index; answers whether there was one.
    pub fn remove_index(&self, name: &str) -> bool {
        self.core.indexer.remove_index(name)
    }

    /// Adds a listener, at any time. What the cache holds comes to it as initial adds.
    pub fn add_listener(&self, config: ListenerConfig) -> Result<Listener, Stopped> {
        let listener = config.name.clone();
        self.core.processor.add_listener(config).ok_or(Stopped { listener })
    }

    /// Returns a look at the informer.
    #[must_use]
    pub fn status(&self) -> InformerStatus {
        let core = &*self.core;
        let reflector = core.reflector.get().map(|reflector| reflector.status().borrow().clone());
        let ReflectorStatus {
            phase,
            last_sign_of_life,
            last_error,
            n_lists,
            n_watches,
            n_events,
            resource_version,
            ..
        } = reflector.unwrap_or_default();
        InformerStatus {
            phase,
            has_synced: self.has_synced(),
            objects: core.indexer.len(),
            bytes: core.indexer.bytes(),
            memory: core.indexer.memory(),
            queued: core.fifo.len(),
            listeners: core.processor.n_listeners(),
            last_sign_of_life,
            last_error,
            relists: n_lists.saturating_sub(1),
            watches: n_watches,
            events: n_events,
            resource_version,
        }
    }

    /// Returns what the reflector is at, as it is and as it changes.
    #[must_use]
    pub fn phase(&self) -> watch::Receiver<Phase> {
        self.core.phase.subscribe()
    }

    /// Returns where the informer is in its life.
    #[must_use]
    pub fn lifecycle(&self) -> Lifecycle {
        *self.core.lifecycle.borrow()
    }

    /// Returns the resource that the informer was made for.
    #[must_use]
    pub fn resource(&self) -> &GroupVersionResource {
        &self.core.config.resource
    }

    /// Waits until the informer has stopped.
    async fn stopped(&self) {
        // The sender is in what this handle holds.
        let _ = self.core.lifecycle.subscribe().wait_for(|lifecycle| *lifecycle == Lifecycle::Stopped).await;
    }
}

// === impl Core ===

impl Core {
    fn start_reflector(&self) -> &Reflector {
        let Set { transformer, watch_error_handler } = self.settings.seal();
        if let Some(transformer) = transformer {
            self.fifo.set_transformer(transformer);
        }
        let resync_period = self.processor.start();
        self.reflector.get_or_init(|| {
            let store = InformerStore {
                publisher: self.config.publisher.clone(),
                fifo: self.fifo.clone(),
                processor: self.processor.clone(),
                held: self.held.clone(),
                sweeper: self.sweeper.clone(),
            };
            let resync_period = (!resync_period.is_zero()).then_some(resync_period);
            let mut config = self.config.reflector.clone();
            config.resync_period = resync_period;
            config.watch_error_handler = watch_error_handler;
            config.description.get_or_insert_with(|| self.config.resource.to_string());
            Reflector::over(self.sources.clone(), Arc::new(store), config)
        })
    }

    /// Moves what is queued into the cache and to the listeners. What is still queued when the token is cancelled stays there.
    async fn pop_until(&self, token: &CancellationToken) {
        let mut has_told_sync = false;
        let publisher = self.config.publisher.as_ref();
        let process = |_: &ObjectKey, deltas: &Deltas, is_in_initial_list: bool| {
            let begun_at = publisher.map(|_| Instant::now());
            self.processor.process(deltas, is_in_initial_list);
            if let (Some(publisher), Some(begun_at)) = (publisher, begun_at) {
                publisher.processed(begun_at.elapsed(), &self.indexer);
            }
            Processed::Done
        };
        while !token.is_cancelled() {
            let popped = match self.fifo.try_pop(process) {
                Ok(true) => Ok(()),
                Ok(false) => tokio::select! {
                    biased;
                    () = token.cancelled() => return,
                    popped = self.fifo.pop(process) => popped,
                },
                Err(closed) => Err(closed),
            };
            if popped.is_err() {
                return;
            }
            self.held.popped();
            if let Some(publisher) = publisher {
                publisher.queued(&self.fifo);
            }
            if !has_told_sync && self.fifo.has_synced() {
                has_told_sync = true;
                self.processor.informer_has_synced();
            }
            if self.sweeper.awake() {
                self.swept.notify_one();
            }
            if self.sweeper.is_over_budget() {
                self.sweeper.sweep();
            }
            // A full queue must not keep the reflector, which is part of the same task, from reading its connection.
            coop::consume_budget().await;
        }
    }

    /// Keeps the cache small, a slice of work at a time: what comes from the API server goes first.
    async fn sweep_forever(&self) {
        loop {
            while self.sweeper.is_idle() {
                self.swept.notified().await;
            }
            tokio::time::sleep(SWEEP_PERIOD).await;
            self.sweeper.tick();
            while self.sweeper.sweep() {
                tokio::task::yield_now().await;
            }
        }
    }

    async fn forward_phase(&self, mut status: watch::Receiver<ReflectorStatus>) {
        loop {
            let phase = status.borrow_and_update().phase.clone();
            self.phase.send_if_modified(|current| {
                let is_news = *current != phase;
                *current = phase;
                is_news
            });
            if status.changed().await.is_err() {
                // The reflector lives as long as this informer, so this cannot be.
                std::future::pending::<()>().await;
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

#[cfg(test)]
mod tests;

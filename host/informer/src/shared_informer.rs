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

mod core;
mod handlers;
mod settings;
mod status;
mod store;

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::delta_fifo::{Ambiguous, Transformer, Watermark};
use crate::indexer::{self, IndexSource, Indexer, Limits};
use crate::list_watch::ListWatch;
use crate::listener::{Listener, ListenerConfig};
use crate::names::GroupVersionResource;
use crate::reflector::{self, Phase, ReflectorStatus, Source, SourceGeneration};
use crate::resource_version::{NotComparable, ResourceVersion};
use crate::toolkit::cache::Lister;
use crate::toolkit::metrics::Publisher;

use self::core::Core;
pub use self::settings::AlreadyStarted;
pub use self::status::InformerStatus;
pub use crate::processor::Lifecycle;

/// How an informer is made.
#[derive(Clone)]
pub struct Config {
    /// The resource, for names in logs and errors.
    pub resource: GroupVersionResource,
    /// How it lists, watches and waits after failures. Of its `resync_period` and the one below the shorter counts.
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
    /// The API server's versions went back, as when its data is restored from a backup, and nobody can tell whether the version asked for
    /// is one of before, which never comes. What is there now is in the cache.
    #[error(
        "resourceVersion {wanted} may be older than a restore of the API server's data: its versions went back, and are at {now:?}"
    )]
    WentBack {
        /// The version asked for.
        wanted: String,
        /// How far the versions have come since.
        now: String,
    },
    /// The informer stopped.
    #[error("the informer has stopped")]
    Stopped,
}

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

    /// Returns the shorter of the two periods that may be set; zero if neither is.
    fn resync_period(&self) -> Duration {
        let periods = [self.resync_period, self.reflector.resync_period.unwrap_or_default()];
        periods.into_iter().filter(|period| !period.is_zero()).min().unwrap_or_default()
    }
}

// === impl SharedInformer ===

impl SharedInformer {
    /// Makes an informer that does nothing until it is run.
    #[must_use]
    pub fn new(list_watch: Arc<dyn ListWatch>, config: Config) -> Self {
        Self { core: Arc::new(Core::new(list_watch, config)) }
    }

    /// Runs the informer until the token is cancelled; then the reflector and the pop loop have ended, what was queued is dropped,
    /// and every listener has ended. An informer runs once; a second call logs and returns.
    ///
    /// It is one future with no tasks of its own. Dropping it stops the informer as well.
    pub async fn run(&self, token: CancellationToken) {
        self.core.run(&token).await;
    }

    /// Returns whether the cache has held the whole first list. A listener may still have to handle it; see
    /// [`ListenerHandle::has_synced`](crate::listener::ListenerHandle::has_synced).
    #[must_use]
    pub fn has_synced(&self) -> bool {
        self.core.fifo.has_synced()
    }

    /// Waits until [`SharedInformer::has_synced`]; returns false when the informer stopped instead.
    pub async fn wait_for_sync(&self) -> bool {
        self.wait_for_watermark(Watermark::has_synced).await
    }

    /// Returns the last resourceVersion that the reflector received; empty before the first list. The cache may be behind it.
    #[must_use]
    pub fn last_resource_version(&self) -> String {
        self.core.reflector_status.resource_version()
    }

    /// Waits until the cache holds everything up to a resourceVersion of this resource, for example the one that a write
    /// returned.
    ///
    /// A version that was seen stays seen, also after a bookmark of a lower version. If a list has a lower version than a list
    /// before, the wait ends in [`WaitError::WentBack`]. The wait may never end if the version is of another resource.
    /// Cancelling the wait is harmless.
    pub async fn wait_until_seen(&self, resource_version: &str) -> Result<(), WaitError> {
        let wanted: ResourceVersion = resource_version.parse()?;
        let mut watermark = self.core.fifo.watermark();
        let begun = watermark.borrow_and_update().clone();
        loop {
            let reached = watermark.borrow_and_update().has_reached_since(&begun, &wanted);
            if let Some(reached) = reached {
                return reached.map_err(|ambiguous| match ambiguous {
                    Ambiguous::NotComparable(error) => error.into(),
                    Ambiguous::WentBack(now) => WaitError::WentBack { wanted: wanted.to_string(), now },
                });
            }
            tokio::select! {
                biased;
                changed = watermark.changed() => changed.map_err(|_| WaitError::Stopped)?,
                () = self.stopped() => return Err(WaitError::Stopped),
            }
        }
    }

    /// Switches to another source at once, and returns its generation; see [`Sources`](reflector::Sources). The first list of the
    /// source replaces the cache in one step. Listeners are notified of the differences; an object at the resourceVersion that
    /// they have received is no difference.
    pub fn switch(&self, source: Source) -> SourceGeneration {
        self.core.sources.switch(source)
    }

    /// Waits until the cache holds a whole list of the source of that generation, or of a later one; returns false when the
    /// informer stopped instead. The generation of the first source is 0.
    pub async fn wait_for_source(&self, generation: SourceGeneration) -> bool {
        let holds =
            |watermark: &Watermark| watermark.has_synced() && watermark.source_generation() >= generation;
        self.wait_for_watermark(holds).await
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
        let ReflectorStatus {
            phase,
            last_sign_of_life,
            last_error,
            n_lists,
            n_watches,
            n_events,
            n_undecodable_events,
            n_undecodable,
            undecodable,
            resource_version,
            ..
        } = core.reflector_status.snapshot();
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
            undecodable_events: n_undecodable_events,
            undecodable: n_undecodable,
            undecodable_objects: undecodable,
            resource_version,
        }
    }

    /// Returns what the reflector is at, as it is and as it changes.
    #[must_use]
    pub fn phase(&self) -> watch::Receiver<Phase> {
        self.core.reflector_status.phase()
    }

    /// Returns where the informer is in its life.
    #[must_use]
    pub fn lifecycle(&self) -> Lifecycle {
        *self.core.processor.lifecycle().borrow()
    }

    /// Returns the resource that the informer was made for.
    #[must_use]
    pub fn resource(&self) -> &GroupVersionResource {
        &self.core.config.resource
    }

    /// Waits until the watermark of the queue is as wanted; returns false when the informer stopped instead.
    async fn wait_for_watermark(&self, is_reached: impl FnMut(&Watermark) -> bool) -> bool {
        let mut watermark = self.core.fifo.watermark();
        tokio::select! {
            biased;
            reached = watermark.wait_for(is_reached) => reached.is_ok(),
            () = self.stopped() => false,
        }
    }

    /// Waits until the informer has stopped.
    async fn stopped(&self) {
        let is_stopped = |lifecycle: &Lifecycle| *lifecycle == Lifecycle::Stopped;
        // This handle keeps the sender alive.
        let _ = self.core.processor.lifecycle().wait_for(is_stopped).await;
    }
}

#[cfg(test)]
mod tests;

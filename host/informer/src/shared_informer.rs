//! One list, one watch and one cache of a resource, shared by many listeners: client-go's SharedInformer.
//!
//! [`SharedInformer::run`] is one future. In it the reflector queues changes in the delta queue, and the pop
//! loop applies them to the cache and then notifies the listeners. This is the contract:
//!
//! **Identity.** An object is identified by resource, namespace and name. Its uid is not part of the
//! identity: if an object is deleted and another one of that name is created while the informer has no watch,
//! listeners receive one update, from the old uid to the new one. A listener that must tell them apart
//! compares the uids.
//!
//! **Consistency.** The cache is eventually consistent with the API server: if an object has a state there,
//! then eventually the cache holds that state or a later one, unless the informer is stopped or the
//! connection fails for good. The states of one object in the cache are a subsequence of its states at the
//! API server, in their order: states may be skipped, but never reordered. This does not hold across a
//! restore of the API server's data, which may bring back older states. A read of the cache is answered from
//! one state of the cache.
//!
//! **Order.** The cache changes first, then the listeners are notified: when a listener receives a state, the
//! cache and its indices hold that state or a later one. A listener receives the notifications of one object
//! in order, as a chain without gaps ([`listener`](crate::listener)). There is no order between objects, nor
//! between listeners.
//!
//! **Late listeners.** A listener may be added at any time. It receives the objects that the cache holds at
//! that moment as initial adds, and then each change since. It misses no change and receives none twice.
//!
//! **Slow listeners.** A listener never delays the cache or other listeners. Its backlog is bounded: beyond
//! the limit, the notifications of one object merge. A slow listener receives fewer notifications, and each
//! is correct.
//!
//! **Deletes.** A delete carries the last known state of the object. If the delete event was missed, that
//! state may be stale, and the notification says so (`final_state_unknown`).
//!
//! **Immutability.** Objects are shared between the cache and all listeners, and cannot be changed.

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
use crate::indexer::{self, IndexLimits, IndexSource, Indexer};
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

/// The configuration of an informer.
#[derive(Clone)]
pub struct Config {
    /// The resource, for names in logs and errors.
    pub resource: GroupVersionResource,
    /// How the informer lists, watches and backs off. The shorter of its `resync_period` and the one below
    /// counts.
    pub reflector: reflector::Config,
    /// How often the informer checks which listeners are due for a resync, and the period of listeners
    /// without one of their own. A listener with a shorter period that is added before the start shortens it.
    /// Zero: no listener is resynced.
    pub resync_period: Duration,
    /// Changes each object before it is queued. [`SharedInformer::set_transformer`] replaces it.
    pub transformer: Option<Transformer>,
    /// Publishes the metrics of the informer.
    pub publisher: Option<Publisher>,
    /// How many bytes of hot, that is uncompressed, texts the cache keeps at most. It compresses objects
    /// beyond that, the oldest first, and objects that were not replaced for about a second.
    pub hot_bytes: usize,
    /// The limits of each index.
    pub index_limits: IndexLimits,
}

/// A handle of an informer. Clones are handles of the same informer. The module's documentation is its
/// contract.
#[derive(Clone)]
pub struct SharedInformer {
    core: Arc<Core>,
}

/// A listener was not added because the informer has stopped.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("listener {listener:?} was not added to shared informer because it has stopped already")]
pub struct Stopped {
    /// The listener's name.
    pub listener: String,
}

/// A wait for a version ended before the version was seen.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WaitError {
    /// The requested version, or that of the API server, is not a decimal integer.
    #[error(transparent)]
    NotComparable(#[from] NotComparable),
    /// The versions of the API server went back, for example because its data was restored from a backup. The
    /// requested version may be one from before, which never comes again. The cache holds the restored state.
    #[error(
        "resourceVersion {wanted} may be older than a restore of the API server's data: its versions went back, and are at {now:?}"
    )]
    WentBack {
        /// The requested version.
        wanted: String,
        /// The highest version since the restore.
        now: String,
    },
    /// The informer stopped.
    #[error("the informer has stopped")]
    Stopped,
}

// === impl Config ===

impl Config {
    /// Returns the default configuration, without resync.
    #[must_use]
    pub fn new(resource: GroupVersionResource) -> Self {
        Self {
            resource,
            reflector: reflector::Config::default(),
            resync_period: Duration::ZERO,
            transformer: None,
            publisher: None,
            hot_bytes: 64 << 20,
            index_limits: IndexLimits::default(),
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
    /// Returns an informer that does nothing until it is run.
    #[must_use]
    pub fn new(list_watch: Arc<dyn ListWatch>, config: Config) -> Self {
        Self { core: Arc::new(Core::new(list_watch, config)) }
    }

    /// Runs the informer until the token is cancelled. On return the reflector and the pop loop have ended,
    /// queued changes are dropped, and every listener is closed. An informer runs once; a second call logs
    /// and returns.
    ///
    /// The informer is this one future and spawns no task. Dropping the future stops the informer as well.
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

    /// Returns the last resourceVersion that the reflector received; empty before the first list. The cache
    /// may be behind it.
    #[must_use]
    pub fn last_resource_version(&self) -> String {
        self.core.reflector_status.resource_version()
    }

    /// Waits until the cache holds everything up to a resourceVersion of this resource, for example the one
    /// that a write returned.
    ///
    /// A version that was seen stays seen, also after a bookmark of a lower version. If a list has a lower
    /// version than a list before, the wait ends in [`WaitError::WentBack`]. The wait may never end if the
    /// version is of another resource. Cancelling the wait is harmless.
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

    /// Switches to another source at once, and returns its generation; see [`Sources`](reflector::Sources).
    /// The objects of the first list of that source replace those in the cache. Listeners are notified of the
    /// differences only: an object at the resourceVersion that they have received is no difference.
    pub fn switch(&self, source: Source) -> SourceGeneration {
        self.core.sources.switch(source)
    }

    /// Waits until the cache holds a whole list of the source of that generation, or of a later one; returns
    /// false when the informer stopped instead. The generation of the first source is 0.
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

    /// Removes an index; returns whether it existed.
    pub fn remove_index(&self, name: &str) -> bool {
        self.core.indexer.remove_index(name)
    }

    /// Adds a listener, at any time. It receives the objects in the cache as initial adds.
    pub fn add_listener(&self, config: ListenerConfig) -> Result<Listener, Stopped> {
        let listener = config.name.clone();
        self.core.processor.add_listener(config).ok_or(Stopped { listener })
    }

    /// Returns the status of the informer at this moment.
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

    /// Returns the phase of the reflector, as it is and as it changes.
    #[must_use]
    pub fn phase(&self) -> watch::Receiver<Phase> {
        self.core.reflector_status.phase()
    }

    /// Returns the lifecycle of the informer.
    #[must_use]
    pub fn lifecycle(&self) -> Lifecycle {
        *self.core.processor.lifecycle().borrow()
    }

    /// Returns the resource of the informer.
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

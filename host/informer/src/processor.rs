//! The listeners of one informer, and the right to change its cache.
//!
//! [`DeltaHandler`] applies deltas to the cache and notifies the listeners. The lock `block_deltas`
//! (client-go's `blockDeltas`) serializes writes to the cache, registrations, removals and snapshots, so a
//! listener receives exactly the changes since its snapshot. Readers of the cache do not take that lock.

mod delta_handler;
mod kept_values;
mod matcher;
mod resync;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use oarlock_json::JsonPointer;
use parking_lot::Mutex;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

use crate::delta_fifo::DeltaFifo;
use crate::indexer::{Indexer, IndexerWriter};
use crate::listener::{DeclaredFields, Listener, ListenerConfig, ListenerShared};
use crate::object::{Object, SharedPointers, StateValues};

pub(crate) use self::delta_handler::{DeltaHandler, SLICE};
use self::kept_values::KeptValues;
#[cfg(test)]
pub(crate) use self::matcher::Tally;
use self::resync::ResyncTimer;

/// The listeners of one informer, and the right to change its cache.
pub(crate) struct Processor {
    block_deltas: Mutex<ProcessorState>,
    indexer: Indexer,
    /// Knows whether the first list was processed.
    fifo: Arc<DeltaFifo>,
    /// The pointers of the listeners, for the decoder of the watch.
    pub(crate) copied: SharedPointers,
    /// Incremented at every registration and removal, while deltas are blocked.
    registrations_version: AtomicU64,
    /// Notified at every registration and removal.
    pub(crate) registrations_changed: Notify,
    /// The values at the pointers of the newest plan. Locked after `block_deltas`, and before the state of
    /// the cache.
    kept: Mutex<KeptValues>,
    /// Written while deltas are blocked.
    lifecycle: watch::Sender<Lifecycle>,
}

/// The state that the lock `block_deltas` guards.
struct ProcessorState {
    writer: IndexerWriter,
    registrations: Vec<Registration>,
    resync_check_period: Duration,
    default_resync_period: Duration,
}

struct Registration {
    listener: Arc<ListenerShared>,
    resync: ResyncTimer,
}

/// The life of an informer, which is started once and stopped once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Lifecycle {
    /// The informer was not started yet.
    Created,
    /// The informer runs.
    Started,
    /// The informer has stopped.
    Stopped,
}

// === impl Processor ===

impl Processor {
    /// Returns a processor without listeners. `fifo` is the queue that the deltas come from.
    pub(crate) fn new(writer: IndexerWriter, fifo: Arc<DeltaFifo>, resync_period: Duration) -> Self {
        let indexer = writer.indexer().clone();
        let state = ProcessorState {
            writer,
            registrations: Vec::new(),
            resync_check_period: resync_period,
            default_resync_period: resync_period,
        };
        Self {
            block_deltas: Mutex::new(state),
            indexer,
            fifo,
            copied: SharedPointers::default(),
            registrations_version: AtomicU64::new(0),
            registrations_changed: Notify::new(),
            kept: Mutex::default(),
            lifecycle: watch::channel(Lifecycle::Created).0,
        }
    }

    /// Returns the lifecycle of the informer, as it is and as it changes.
    pub(crate) fn lifecycle(&self) -> watch::Receiver<Lifecycle> {
        self.lifecycle.subscribe()
    }

    /// Starts the informer: fixes the period of the resync check and returns it. Returns none if it was
    /// started before.
    pub(crate) fn start(&self) -> Option<Duration> {
        let state = self.block_deltas.lock();
        let is_first = self.lifecycle.send_if_modified(|lifecycle| {
            let is_first = *lifecycle == Lifecycle::Created;
            if is_first {
                *lifecycle = Lifecycle::Started;
            }
            is_first
        });
        is_first.then_some(state.resync_check_period)
    }

    /// Stops the informer: closes all listeners.
    pub(crate) fn stop(&self) {
        let mut state = self.block_deltas.lock();
        for Registration { listener, .. } in std::mem::take(&mut state.registrations) {
            listener.close();
        }
        self.lifecycle.send_replace(Lifecycle::Stopped);
    }

    /// Registers a listener, which receives the objects in the cache as initial adds. Returns none once
    /// stopped.
    pub(crate) fn add_listener(self: &Arc<Self>, config: ListenerConfig) -> Option<Listener> {
        let (listener, snapshot) = {
            let mut state = self.block_deltas.lock();
            let lifecycle = *self.lifecycle.borrow();
            if lifecycle == Lifecycle::Stopped {
                return None;
            }
            let resync = state.resync_timer(&config, lifecycle);
            let declared = state.declared_fields(&config.fields);
            let listener = Arc::new(ListenerShared::new(config, declared, self.fifo.has_synced()));
            state.registrations.push(Registration { listener: listener.clone(), resync });
            self.registrations_version.fetch_add(1, Ordering::Release);
            self.registrations_changed.notify_one();
            let snapshot = self.indexer.snapshot(&listener.namespaces());
            (listener, snapshot)
        };
        listener.load_initial_snapshot(snapshot);
        Some(Listener::new(listener, self.clone()))
    }

    /// Removes a listener and drops its backlog. Returns whether it was registered; does nothing otherwise.
    pub(crate) fn remove(&self, listener: &Arc<ListenerShared>) -> bool {
        let mut state = self.block_deltas.lock();
        let n_before = state.registrations.len();
        state.registrations.retain(|registration| !Arc::ptr_eq(&registration.listener, listener));
        let is_removed = state.registrations.len() < n_before;
        self.registrations_version.fetch_add(u64::from(is_removed), Ordering::Release);
        self.registrations_changed.notify_one();
        drop(state);
        if is_removed {
            listener.close();
        }
        is_removed
    }

    /// Returns the kept values of an object at the pointers with this number, if the cache has this state of
    /// the object and the values were kept. Returns none while the cache changes, rather than wait.
    pub(crate) fn kept_values(&self, object: &Object, pointers: u32) -> Option<StateValues> {
        let kept = self.kept.try_lock().filter(|kept| kept.are_of(pointers))?;
        kept.get(self.slot_of(object)?).cloned()
    }

    /// Keeps values that were found in an object, if they are short and the cache has this state of the
    /// object. Does nothing while the cache changes.
    pub(crate) fn keep_values(&self, object: &Object, values: &StateValues) {
        if !kept_values::are_short(values) {
            return;
        }
        let kept = self.kept.try_lock().filter(|kept| kept.has_pointers_of(values));
        if let Some(mut kept) = kept
            && let Some(slot) = self.slot_of(object)
        {
            kept.set_found(slot, values);
            self.record_size(&mut kept);
        }
    }

    /// Frees some of the memory of values that an earlier plan needed; returns whether more is left.
    pub(crate) fn free_kept(&self) -> bool {
        self.kept.lock().free_many()
    }

    /// Returns the kept values of a slot, whose object is about to change. Frees some of the memory that an
    /// earlier plan needed.
    fn kept_before_change(&self, slot: Option<u32>) -> Option<StateValues> {
        let mut kept = self.kept.lock();
        kept.free_some();
        self.record_size(&mut kept);
        slot.and_then(|slot| kept.get(slot)).cloned()
    }

    /// Counts the kept values in the cache's memory.
    fn record_size(&self, kept: &mut KeptValues) {
        if let Some(size) = kept.new_size() {
            self.indexer.record_kept_values(size);
        }
    }

    /// Returns the slot of an object, if it is in the cache in this state.
    fn slot_of(&self, object: &Object) -> Option<u32> {
        let (slot, cached) = self.indexer.get_with_slot(object.key())?;
        cached.is_same(object).then_some(slot)
    }

    pub(crate) fn n_listeners(&self) -> usize {
        self.block_deltas.lock().registrations.len()
    }

    /// Runs a function while the cache does not change and no listener is notified.
    pub(crate) fn block_deltas<T>(&self, run: impl FnOnce(&Indexer) -> T) -> T {
        let _state = self.block_deltas.lock();
        run(&self.indexer)
    }

    /// Notifies the listeners that the informer has synced. Called once the queue has synced; later listeners
    /// read that from the queue when they are registered.
    pub(crate) fn informer_has_synced(&self) {
        let state = self.block_deltas.lock();
        state.registrations.iter().for_each(|registration| registration.listener.informer_has_synced());
    }

    /// Marks the listeners whose resync is due as resyncing, and all others as not. Returns whether any is
    /// due.
    pub(crate) fn should_resync(&self, now: Instant) -> bool {
        let mut state = self.block_deltas.lock();
        let check_period = state.resync_check_period;
        let registrations = state.registrations.iter_mut();
        let due = registrations.map(|registration| registration.resync.tick(check_period, now));
        due.fold(false, |any, is_due| any | is_due)
    }
}

// === impl ProcessorState ===

impl ProcessorState {
    /// Returns the declared fields of a new listener, if there are any: those of another one, if it declares
    /// the same.
    fn declared_fields(&self, fields: &[JsonPointer]) -> Option<Arc<DeclaredFields>> {
        let mut others = self.registrations.iter();
        others
            .find_map(|other| other.listener.declared_if(fields))
            .or_else(|| DeclaredFields::new(fields).map(Arc::new))
    }

    /// Returns the resync timer of a new listener. Before the start, a shorter period shortens the
    /// informer's; afterwards it is raised to the informer's.
    fn resync_timer(&mut self, config: &ListenerConfig, lifecycle: Lifecycle) -> ResyncTimer {
        let listener = &config.name;
        let requested = resync::requested(config.resync.unwrap_or(self.default_resync_period));
        let check_period = self.resync_check_period;
        let is_shorter = !requested.is_zero() && requested < check_period;
        match lifecycle {
            Lifecycle::Created if is_shorter => self.resync_check_period = requested,
            Lifecycle::Started if is_shorter => {
                tracing::warn!(
                    listener,
                    ?requested,
                    ?check_period,
                    "the listener's resync period is raised to that of the informer, which has started already"
                );
                return ResyncTimer::new(check_period, check_period, Instant::now());
            }
            _ if check_period.is_zero() && !requested.is_zero() => {
                tracing::warn!(
                    listener,
                    ?requested,
                    "the listener is never resynced, because the informer has no resync period"
                );
            }
            _ => {}
        }
        ResyncTimer::new(requested, self.resync_check_period, Instant::now())
    }
}

//! Applies deltas to the cache and tells the listeners.
//!
//! One lock, "block deltas", makes writes to the cache, registration, removal and the taking of snapshots exclude each other:
//! what a listener is told is exactly what happened since its snapshot. Readers of the cache do not take that lock.
//! Whether something is an add or an update, the cache decides, not the type of the delta.

mod resync;

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use crate::delta_fifo::{Delta, DeltaObject, Deltas};
use crate::indexer::{Indexer, IndexerWriter};
use crate::listener::{Change, Listener, ListenerConfig, Shared};
use crate::object::Object;

use self::resync::ResyncTimer;

/// The listeners of one informer, and the right to change its cache.
pub(crate) struct Processor {
    /// Block deltas.
    inner: Mutex<Inner>,
    indexer: Indexer,
}

struct Inner {
    writer: IndexerWriter,
    registrations: Vec<Registration>,
    resync_check_period: Duration,
    default_resync_period: Duration,
    lifecycle: Lifecycle,
    has_synced: bool,
}

struct Registration {
    shared: Arc<Shared>,
    resync: ResyncTimer,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lifecycle {
    Created,
    Started,
    Stopped,
}

// === impl Processor ===

impl Processor {
    pub(crate) fn new(writer: IndexerWriter, resync_period: Duration) -> Self {
        let indexer = writer.indexer().clone();
        let inner = Inner {
            writer,
            registrations: Vec::new(),
            resync_check_period: resync_period,
            default_resync_period: resync_period,
            lifecycle: Lifecycle::Created,
            has_synced: false,
        };
        Self { inner: Mutex::new(inner), indexer }
    }

    /// Fixes the period of the resync timer and returns it.
    pub(crate) fn start(&self) -> Duration {
        let mut inner = self.inner.lock();
        inner.lifecycle = Lifecycle::Started;
        inner.resync_check_period
    }

    /// Ends all listeners.
    pub(crate) fn stop(&self) {
        let mut inner = self.inner.lock();
        inner.lifecycle = Lifecycle::Stopped;
        for Registration { shared, .. } in std::mem::take(&mut inner.registrations) {
            shared.close();
        }
    }

    /// Registers a listener; what the cache holds comes to it as initial adds. `None` once stopped.
    pub(crate) fn add_listener(self: &Arc<Self>, config: ListenerConfig) -> Option<Listener> {
        let (shared, snapshot) = {
            let mut inner = self.inner.lock();
            if inner.lifecycle == Lifecycle::Stopped {
                return None;
            }
            let shared = Arc::new(Shared::new(config, inner.has_synced));
            let resync = inner.resync_timer(shared.name(), shared.resync());
            inner.registrations.push(Registration { shared: shared.clone(), resync });
            (shared.clone(), self.indexer.snapshot(&shared.namespaces()))
        };
        shared.begin(snapshot);
        Some(Listener::new(shared, self.clone()))
    }

    /// Removes a listener and drops what waits for it. Answers whether there was such a one; else nothing happens.
    pub(crate) fn remove(&self, shared: &Arc<Shared>) -> bool {
        let mut inner = self.inner.lock();
        let before = inner.registrations.len();
        inner.registrations.retain(|registration| !Arc::ptr_eq(&registration.shared, shared));
        let is_removed = inner.registrations.len() < before;
        drop(inner);
        if is_removed {
            shared.close();
        }
        is_removed
    }

    pub(crate) fn n_listeners(&self) -> usize {
        self.inner.lock().registrations.len()
    }

    /// Runs something during which neither the cache changes nor anybody is told anything.
    pub(crate) fn block_deltas<T>(&self, run: impl FnOnce(&Indexer) -> T) -> T {
        let _inner = self.inner.lock();
        run(&self.indexer)
    }

    /// Applies the deltas of one object: the cache first, then the listeners.
    pub(crate) fn process(&self, deltas: &Deltas, is_in_initial_list: bool) {
        let mut inner = self.inner.lock();
        let now = Instant::now();
        for delta in deltas.as_slice() {
            if let Some(change) = apply(&mut inner.writer, delta, is_in_initial_list) {
                inner.distribute(&change, now);
            }
        }
    }

    /// Tells the listeners, once, that the whole first list has been processed.
    pub(crate) fn informer_has_synced(&self) {
        let mut inner = self.inner.lock();
        if !std::mem::replace(&mut inner.has_synced, true) {
            inner.registrations.iter().for_each(|registration| registration.shared.informer_has_synced());
        }
    }

    /// Marks the listeners whose resync is due as syncing and all others as not; answers whether there is one.
    pub(crate) fn should_resync(&self, now: Instant) -> bool {
        let mut inner = self.inner.lock();
        let check_period = inner.resync_check_period;
        let due =
            inner.registrations.iter_mut().map(|registration| registration.resync.tick(check_period, now));
        due.fold(false, |any, is_due| any | is_due)
    }
}

// === impl Inner ===

impl Inner {
    fn distribute(&self, change: &Change, now: Instant) {
        let is_sync = change.is_sync();
        for registration in &self.registrations {
            if !is_sync || registration.resync.is_syncing() {
                registration.shared.tell(change, now);
            }
        }
    }

    fn resync_timer(&mut self, name: &str, requested: Option<Duration>) -> ResyncTimer {
        let requested = resync::requested(requested.unwrap_or(self.default_resync_period));
        let check_period = self.resync_check_period;
        let is_sooner = !requested.is_zero() && requested < check_period;
        match self.lifecycle {
            Lifecycle::Created if is_sooner => self.resync_check_period = requested,
            Lifecycle::Started if is_sooner => {
                tracing::warn!(
                    listener = name,
                    ?requested,
                    ?check_period,
                    "resync period raised: the informer runs"
                );
                return ResyncTimer::new(check_period, check_period, Instant::now());
            }
            _ if check_period.is_zero() && !requested.is_zero() => {
                tracing::warn!(listener = name, ?requested, "no resync: the informer does none");
            }
            _ => {}
        }
        ResyncTimer::new(requested, self.resync_check_period, Instant::now())
    }
}

fn apply(writer: &mut IndexerWriter, delta: &Delta, is_in_initial_list: bool) -> Option<Change> {
    match delta {
        Delta::Added(new) | Delta::Updated(new) | Delta::Replaced(new) | Delta::Sync(new) => {
            let new = new.clone();
            match writer.put(new.clone()) {
                Some(old) if matches!(delta, Delta::Replaced(_)) && is_another_form(&old, &new) => None,
                Some(old) => Some(Change::Updated { old, new, is_resync: matches!(delta, Delta::Sync(_)) }),
                None => Some(Change::Added { new, is_in_initial_list }),
            }
        }
        Delta::Deleted(deleted) => {
            let (key, last_state, final_state_unknown) = match deleted {
                DeltaObject::Object(object) => (object.key(), Some(object), false),
                DeltaObject::Tombstone(tombstone) => (&tombstone.key, None, true),
            };
            // Nobody was told of an object that the cache did not hold, so nobody is told of its end.
            let old = writer.delete(key, last_state)?;
            let object = deleted.last_known().unwrap_or(&old).clone();
            Some(Change::Deleted { old, object, final_state_unknown })
        }
    }
}

/// Whether the two are one version of one object, the one whole and the other its metadata alone: to nobody that is news.
fn is_another_form(old: &Object, new: &Object) -> bool {
    old.json_length() != new.json_length()
        && !new.resource_version().is_empty()
        && old.resource_version() == new.resource_version()
        && old.uid() == new.uid()
}

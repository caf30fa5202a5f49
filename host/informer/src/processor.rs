//! Applies deltas to the cache and notifies the listeners.
//!
//! One lock, "block deltas", makes writes to the cache, registration, removal and the taking of snapshots exclude each other:
//! what a listener receives is exactly what happened since its snapshot. Readers of the cache do not take that lock.
//! Whether something is an add or an update, the cache decides, not the type of the delta.
//!
//! **Matching comes first.** Which listeners a change concerns is found out before that lock is taken, a slice of work at a time, since
//! texts may be long and listeners many. This is right because the informer's one consumer alone changes the cache: the state that a
//! delta will meet is known before it is applied, and what listeners ask of an object never changes. Under the lock the change is
//! applied, and each listener's backlog gets what was found. A listener that was registered meanwhile has the change matched again, for
//! all; one whose namespaces have changed meanwhile is asked then.
//!
//! **Order of the locks.** The delta queue, the matcher, block deltas, one listener's state. The matcher's is waited for by no one else
//! than the consumer, so that neither a registration nor a removal waits while something is matched.

mod matcher;
mod resync;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use crate::delta_fifo::{Delta, DeltaObject, Deltas};
use crate::indexer::{Indexer, IndexerWriter};
use crate::listener::{Change, Listener, ListenerConfig, Shared, Verdict};
use crate::names::ObjectKey;
use crate::object::Object;

#[cfg(test)]
pub(crate) use self::matcher::Tally;
use self::matcher::{Job, Matcher};
use self::resync::ResyncTimer;

/// How much matching is done at a time, in bytes of text: about a millisecond's worth.
pub(crate) const SLICE: usize = 1 << 20;

/// The listeners of one informer, and the right to change its cache.
pub(crate) struct Processor {
    matcher: Mutex<Matcher>,
    /// Block deltas.
    inner: Mutex<Inner>,
    indexer: Indexer,
    /// Grows with every registration and removal. Written while deltas are blocked.
    version: AtomicU64,
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
        Self { matcher: Mutex::default(), inner: Mutex::new(inner), indexer, version: AtomicU64::new(0) }
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
            self.version.fetch_add(1, Ordering::Release);
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
        self.version.fetch_add(u64::from(is_removed), Ordering::Release);
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

    /// Applies the deltas of one object: the cache first, then the listeners. However much there is to match, it is done here.
    #[cfg(any(test, feature = "testing"))]
    pub(crate) fn process(&self, deltas: &Deltas, is_in_initial_list: bool) {
        self.process_some(deltas, is_in_initial_list, usize::MAX);
    }

    /// Applies the deltas of one object as [`process`](Self::process) does, as long as there is no more than so much to match; answers how
    /// many it has applied. The matching of the next one has begun then, and goes on with [`match_some`](Self::match_some).
    pub(crate) fn process_some(&self, deltas: &Deltas, is_in_initial_list: bool, work: usize) -> usize {
        let mut matcher = self.matcher.lock();
        let now = Instant::now();
        let mut n_left = work;
        let is_held_up =
            |delta: &Delta| !self.process_one(&mut matcher, delta, is_in_initial_list, now, &mut n_left);
        let deltas = deltas.as_slice();
        deltas.iter().position(is_held_up).unwrap_or(deltas.len())
    }

    /// Goes on with the matching that [`process_some`](Self::process_some) has left; answers whether there is more of it.
    pub(crate) fn match_some(&self, work: usize) -> bool {
        self.matcher.lock().go_on(work)
    }

    /// Whether [`process_some`](Self::process_some) has left some matching to do.
    pub(crate) fn is_matching(&self) -> bool {
        self.matcher.lock().is_busy()
    }

    /// What matching has cost.
    #[cfg(test)]
    pub(crate) fn tally(&self) -> Tally {
        self.matcher.lock().tally
    }

    /// Applies one delta, unless there is too much to match.
    fn process_one(
        &self,
        matcher: &mut Matcher,
        delta: &Delta,
        is_in_initial_list: bool,
        now: Instant,
        n_left: &mut usize,
    ) -> bool {
        loop {
            let version = self.version.load(Ordering::Acquire);
            if !matcher.is_at(version) && !matcher.is_tired() {
                let inner = self.inner.lock();
                let version = self.version.load(Ordering::Acquire);
                let listeners = inner.registrations.iter().map(|it| it.shared.clone()).collect();
                drop(inner);
                matcher.plan(listeners, version);
            }
            if matcher.is_trivial() {
                let mut inner = self.inner.lock();
                if !matcher.is_at(self.version.load(Ordering::Acquire)) {
                    continue;
                }
                if let Some(change) = inner.apply(delta, is_in_initial_list) {
                    inner.distribute(&change, change.is_sync(), now, |_, _| change.verdict());
                }
                return true;
            }
            let Some(change) = change(delta, self.cached(delta), is_in_initial_list) else {
                self.inner.lock().apply(delta, is_in_initial_list);
                return true;
            };
            if !matcher.has_begun_with(&change) {
                let is_sync = change.is_sync();
                let syncing = if is_sync { self.inner.lock().syncing() } else { Vec::new() };
                matcher.begin(change, is_sync, |shared| syncing.iter().any(|it| Arc::ptr_eq(it, shared)));
            }
            if !matcher.advance(n_left) {
                return false;
            }
            let mut inner = self.inner.lock();
            if !matcher.is_at(self.version.load(Ordering::Acquire)) && !matcher.is_tired() {
                continue;
            }
            inner.apply(delta, is_in_initial_list);
            if let Some((Job { change, is_sync, .. }, mut verdicts)) = matcher.finish() {
                inner.distribute(&change, is_sync, now, |listener, change| verdicts.of(listener, change));
            }
            return true;
        }
    }

    /// Returns what the cache holds of a delta's object.
    fn cached(&self, delta: &Delta) -> Option<Object> {
        self.indexer.get(key(delta))
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
    /// Applies a delta to the cache; answers what has changed that listeners may care about.
    fn apply(&mut self, delta: &Delta, is_in_initial_list: bool) -> Option<Change> {
        let old = match delta {
            Delta::Added(new) | Delta::Updated(new) | Delta::Replaced(new) | Delta::Sync(new) => {
                self.writer.put(new.clone())
            }
            Delta::Deleted(DeltaObject::Object(object)) => self.writer.delete(object.key(), Some(object)),
            Delta::Deleted(DeltaObject::Tombstone(tombstone)) => self.writer.delete(&tombstone.key, None),
        };
        change(delta, old, is_in_initial_list)
    }

    /// Gives each listener what the change is to it.
    fn distribute(
        &self,
        change: &Change,
        is_sync: bool,
        now: Instant,
        mut verdict: impl FnMut(&Arc<Shared>, &Change) -> Verdict,
    ) {
        for registration in &self.registrations {
            if !is_sync || registration.resync.is_syncing() {
                registration.shared.tell(change, verdict(&registration.shared, change), now);
            }
        }
    }

    /// Returns the listeners that a resync is for.
    fn syncing(&self) -> Vec<Arc<Shared>> {
        let syncing = self.registrations.iter().filter(|registration| registration.resync.is_syncing());
        syncing.map(|registration| registration.shared.clone()).collect()
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

/// Returns what a delta changes that listeners may care about, where the cache holds `old`.
fn change(delta: &Delta, old: Option<Object>, is_in_initial_list: bool) -> Option<Change> {
    match delta {
        Delta::Added(new) | Delta::Updated(new) | Delta::Replaced(new) | Delta::Sync(new) => {
            let new = new.clone();
            match old {
                Some(old) if matches!(delta, Delta::Replaced(_)) && is_another_form(&old, &new) => None,
                Some(old) => Some(Change::Updated { old, new, is_resync: matches!(delta, Delta::Sync(_)) }),
                None => Some(Change::Added { new, is_in_initial_list }),
            }
        }
        Delta::Deleted(deleted) => {
            // No listener was given an object that the cache did not hold, so none is given its end.
            let old = old?;
            // Never the state of another object of that name: no listener was given that one.
            let object =
                deleted.last_known().filter(|object| object.has_uid_of(&old)).unwrap_or(&old).clone();
            Some(Change::Deleted { old, object, final_state_unknown: deleted.is_tombstone() })
        }
    }
}

/// Returns under which key the cache has a delta's object.
fn key(delta: &Delta) -> &ObjectKey {
    match delta {
        Delta::Added(object) | Delta::Updated(object) | Delta::Replaced(object) | Delta::Sync(object) => {
            object.key()
        }
        Delta::Deleted(DeltaObject::Object(object)) => object.key(),
        Delta::Deleted(DeltaObject::Tombstone(tombstone)) => &tombstone.key,
    }
}

/// Whether the two are one version of one object, the one whole and the other its metadata alone: to nobody that is news.
fn is_another_form(old: &Object, new: &Object) -> bool {
    old.content() != new.content() && new.is_version_of(old)
}

//! The handle of a listener: finishing deliveries, replay, visibility and figures.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::backlog::Backlog;
use super::notification::{Delivery, Notification, Outcome};
use super::shared::{ListenerShared, ListenerState, SyncState};
use crate::names::ObjectKey;
use crate::namespaces::Namespaces;
use crate::processor::Processor;

/// Everything about a listener but taking notifications. Clones are handles of the same listener, and do not
/// keep it registered.
#[derive(Clone)]
pub struct ListenerHandle {
    pub(super) shared: Arc<ListenerShared>,
    pub(super) processor: Arc<Processor>,
}

/// A snapshot of the figures of a listener's backlog.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListenerStats {
    /// How many notifications wait, without those of parked objects.
    pub pending: usize,
    /// How many objects are in flight.
    pub in_flight: usize,
    /// How many objects are backing off.
    pub backing_off: usize,
    /// How many objects are deferred: they wait until the consumer asks for them.
    pub deferred: usize,
    /// How many objects are parked.
    pub parked: usize,
    /// How many notifications were ever merged into others.
    pub merged: u64,
    /// How many deliveries ever ended in [`Outcome::Done`].
    pub delivered: u64,
    /// How many deliveries ever ended in [`Outcome::Retry`].
    pub retried: u64,
    /// For how long the oldest notification that is ready, backing off or deferred has waited.
    pub oldest_age: Duration,
}

/// How much [`ListenerHandle::replay`] delivers again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Replayed {
    /// How many initial adds wait.
    pub n_objects: usize,
    /// Whether the selection was applied to all objects. While it is not, there may be fewer initial adds.
    pub is_exact: bool,
}

// === impl ListenerHandle ===

impl ListenerHandle {
    pub(crate) fn shared(&self) -> &Arc<ListenerShared> {
        &self.shared
    }

    /// Removes the listener from its informer and drops its backlog. Deliveries in flight continue, and
    /// [`next`](super::Listener::next) returns `None`. Does nothing the second time.
    pub fn remove(&self) {
        self.processor.remove(&self.shared);
    }

    /// Returns whether the listener was removed, or its informer has stopped.
    pub(crate) fn is_closed(&self) -> bool {
        self.shared.state.lock().sync == SyncState::Closed
    }

    /// Returns the listener's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.shared.name
    }

    /// Ends a delivery with its outcome; the object's next notification may follow. Does nothing if the
    /// object is not in flight.
    pub fn finish(&self, key: &ObjectKey, outcome: Outcome) {
        let mut state = self.shared.state.lock();
        let n_ready_before = state.backlog.n_ready_or_backing_off();
        if !state.backlog.finish(key, outcome) {
            tracing::debug!(listener = self.name(), %key, "finished an object that is not in flight");
            return;
        }
        self.shared.update_sync(&mut state);
        let has_more = state.backlog.n_ready_or_backing_off() > n_ready_before;
        drop(state);
        if has_more {
            self.shared.wake.notify_one();
        }
    }

    /// Takes the notification of a [deferred](Outcome::Defer) object, which is in flight from then on.
    /// Returns none if the object is not deferred, or not any more: after a replay, after its namespace
    /// ceased to be visible, or when a later change cancelled the notification.
    #[must_use]
    pub fn take_deferred(&self, key: &ObjectKey) -> Option<Delivery> {
        let mut state = self.shared.state.lock();
        if state.sync == SyncState::Closed || state.since_snapshot.is_some() {
            return None;
        }
        state.backlog.take_deferred(key)
    }

    /// Returns whether both are handles of one listener.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.shared, &other.shared)
    }

    /// Makes all [deferred](Outcome::Defer) objects ready. Returns how many.
    pub fn release_deferred(&self) -> usize {
        let n_released = self.shared.state.lock().backlog.release_deferred();
        if n_released > 0 {
            self.shared.wake.notify_one();
        }
        n_released
    }

    /// Returns all deliveries in flight to the backlog. They are delivered again and do not count as
    /// attempts. Returns how many.
    pub fn abandon_in_flight(&self) -> usize {
        let mut state = self.shared.state.lock();
        let n_abandoned = state.backlog.abandon_in_flight();
        self.shared.update_sync(&mut state);
        drop(state);
        self.shared.wake.notify_one();
        n_abandoned
    }

    /// Returns one delivery in flight to the backlog, as [`ListenerHandle::abandon_in_flight`] does with all.
    /// Does nothing if the object is not in flight.
    pub fn abandon(&self, key: &ObjectKey) {
        let mut state = self.shared.state.lock();
        state.backlog.abandon(key);
        self.shared.update_sync(&mut state);
        drop(state);
        self.shared.wake.notify_one();
    }

    /// Restarts the listener: drops the backlog, save for deletes of objects that no longer exist, and
    /// delivers all existing objects as initial adds. Forgets parked objects and counts of attempts. The
    /// listener is synced again once the initial adds are finished.
    ///
    /// Deliveries in flight continue. Whatever [`finish`](Self::finish) says, they are not delivered again,
    /// save for a delete of an object that no longer exists.
    pub fn replay(&self) -> Replayed {
        let shared = &self.shared;
        let mut loader = shared.loader.lock();
        let snapshot = self.processor.block_deltas(|indexer| {
            shared.start_snapshot();
            indexer.snapshot(&shared.namespaces())
        });
        shared.expect_initial_adds();
        shared.load_snapshot(&mut loader, snapshot, true);
        match &*loader {
            None => Replayed { n_objects: shared.state.lock().backlog.n_initial(), is_exact: true },
            Some(loader) => Replayed { n_objects: loader.n_objects(), is_exact: false },
        }
    }

    /// Changes which namespaces the listener sees. Objects that become visible are delivered as initial adds.
    /// Objects that are not visible any more are forgotten without a delete, and their notifications are
    /// dropped.
    pub fn set_namespaces(&self, namespaces: Namespaces) {
        let shared = &self.shared;
        let mut loader = shared.loader.lock();
        if shared.namespaces() == namespaces {
            return;
        }
        // The snapshot that is being loaded is of the namespaces before.
        shared.continue_loading(&mut loader, usize::MAX);
        let snapshot = self.processor.block_deltas(|indexer| {
            let before = std::mem::replace(&mut shared.state.lock().namespaces, namespaces.clone());
            shared.start_snapshot();
            let mut snapshot = match (&before, &namespaces) {
                (Namespaces::All, _) => return Vec::new(),
                (Namespaces::Only(before), Namespaces::Only(now)) => {
                    indexer.snapshot(&Namespaces::Only(now.difference(before).cloned().collect()))
                }
                (Namespaces::Only(_), Namespaces::All) => indexer.snapshot(&Namespaces::All),
            };
            snapshot.retain(|object| !before.contains(object.key().namespace()));
            snapshot
        });
        shared.state.lock().backlog.drop_invisible(|key| namespaces.contains(key.namespace()));
        if !snapshot.is_empty() {
            shared.expect_initial_adds();
        }
        shared.load_snapshot(&mut loader, snapshot, false);
    }

    /// Returns which namespaces the listener sees.
    #[must_use]
    pub fn namespaces(&self) -> Namespaces {
        self.shared.namespaces()
    }

    /// Begins where `old`, another listener of the same informer, is now, and removes `old`. Delivers first
    /// the deletes that wait for `old`, of objects that this listener does not see now, and then the objects
    /// that it sees as initial adds. So no object goes back to a state before one that `old` has delivered.
    /// If both collect [keys](super::ListenerConfig::keys), all changes that wait for `old` come first.
    /// To be called before the first [`next`](super::Listener::next).
    pub fn begin_after(&self, old: &Self) {
        let shared = &self.shared;
        let mut loader = shared.loader.lock();
        let (of_old, dropped, snapshot) = self.processor.block_deltas(|indexer| {
            (old.shared.take_backlog(), shared.start_again(), indexer.snapshot(&shared.namespaces()))
        });
        drop(dropped);
        old.remove();
        shared.expect_initial_adds();
        // A long backlog takes a while. So no lock is held that a change waits for.
        let collects_keys = shared.state.lock().backlog.collects_keys();
        let mut changes = of_old.into_changes(collects_keys);
        {
            // The end of the snapshot drops the deletes of the objects in it.
            let mut state = shared.state.lock();
            let ListenerState { backlog, namespaces, .. } = &mut *state;
            changes.retain(|(key, _)| namespaces.contains(key.namespace()));
            backlog.push_to_front(changes, Instant::now());
        }
        shared.load_snapshot(&mut loader, snapshot, false);
    }

    /// Returns whether the informer has synced and every initial add was finished, or parked. Stays true
    /// until a replay, or until more namespaces become visible.
    #[must_use]
    pub fn has_synced(&self) -> bool {
        self.shared.state.lock().sync == SyncState::Synced
    }

    /// Waits until [`ListenerHandle::has_synced`]; returns false when the listener was removed or the
    /// informer stopped instead.
    pub async fn wait_for_sync(&self) -> bool {
        self.shared.wait_for_sync().await
    }

    /// Returns the figures of the backlog.
    #[must_use]
    pub fn stats(&self) -> ListenerStats {
        let state = self.shared.state.lock();
        let backlog = &state.backlog;
        ListenerStats {
            pending: backlog.n_waiting() + state.since_snapshot.as_ref().map_or(0, Backlog::n_waiting),
            in_flight: backlog.n_in_flight(),
            backing_off: backlog.n_backing_off(),
            deferred: backlog.n_deferred(),
            parked: backlog.n_parked(),
            merged: backlog.n_merged,
            delivered: backlog.n_delivered,
            retried: backlog.n_retried,
            oldest_age: backlog.oldest_age(Instant::now()),
        }
    }

    /// Frees the memory that the backlog keeps for the next notifications. For a consumer that expects none
    /// for a while.
    pub fn free_spare(&self) {
        self.shared.state.lock().backlog.free_spare();
    }

    /// Returns the notifications that wait, without initial adds. The order is not defined.
    #[must_use]
    pub fn waiting_changes(&self) -> Vec<Notification> {
        let state = self.shared.state.lock();
        let backlogs = [Some(&state.backlog), state.since_snapshot.as_ref()];
        backlogs.into_iter().flatten().flat_map(Backlog::waiting_changes).collect()
    }

    /// Returns the keys of the parked objects, sorted.
    #[must_use]
    pub fn parked(&self) -> Vec<ObjectKey> {
        self.shared.state.lock().backlog.parked()
    }

    /// Makes all parked objects ready and resets their counts of attempts. Returns how many.
    pub fn retry_parked(&self) -> usize {
        let n_parked = self.shared.state.lock().backlog.retry_parked();
        self.shared.wake.notify_one();
        n_parked
    }

    /// Ends the back-off of all objects and resets their counts of attempts, and those of the objects in
    /// flight. Returns how many were in back-off.
    pub fn retry_backing_off(&self) -> usize {
        let n_objects = self.shared.state.lock().backlog.retry_backing_off();
        self.shared.wake.notify_one();
        n_objects
    }

    /// Makes one parked object ready and resets its count of attempts. Returns whether it was parked.
    pub fn retry_parked_object(&self, key: &ObjectKey) -> bool {
        let was_parked = self.shared.state.lock().backlog.retry_parked_object(key);
        if was_parked {
            self.shared.wake.notify_one();
        }
        was_parked
    }
}

impl fmt::Debug for ListenerHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ListenerHandle({})", self.shared.name)
    }
}

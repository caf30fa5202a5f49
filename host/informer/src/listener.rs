//! One subscriber's end of a shared informer: what it is told, when, and what waits for it.
//!
//! **Order.** Each object is a continuous story: an add, then updates whose old state is the new one of the notification
//! before, then a delete; then nothing until an add. One object is never in flight twice. Between objects nothing is
//! promised, but the oldest that is ready goes first; one that is in flight or backing off holds up no other.
//!
//! **Merging.** Up to the backlog's limit every notification is delivered separately. Beyond it those that wait for one
//! object merge into one that spans them; so do a failed one and whatever follows it. What waits is therefore bounded by the
//! limit plus two per object.
//!
//! **Bytes.** States that no cache holds any more, but a notification does, are billed to a [`BacklogAccount`]: the old state of an
//! update, the last one of a delete, a new one that was superseded by an update which is skipped since it changes no declared field. When it
//! is full, notifications merge as if the limit were reached, skipped updates included.
//!
//! **Pull.** Nothing is called back: the consumer takes with [`Listener::next`] and answers with
//! [`ListenerHandle::finish`]. Dropping the listener removes it, and its backlog.

mod account;
mod backlog;
mod filter;
mod matching;
mod merge;
mod notification;
mod shared;

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use crate::names::ObjectKey;
use crate::namespaces::Namespaces;
use crate::processor::Processor;
use crate::selector::{FieldCondition, LabelSelector};
use oarlock_json::JsonPointer;

pub use self::account::BacklogAccount;
use self::backlog::Backlog;
pub(crate) use self::filter::{Change, Verdict};
pub(crate) use self::matching::{Matching, Plan};
pub use self::notification::{Delivery, Notification, Outcome};
pub(crate) use self::shared::Shared;
use self::shared::{SLICE, Sync};

/// What a listener is to be told.
#[derive(Clone, Debug)]
pub struct ListenerConfig {
    /// Its name in logs and metrics.
    pub name: String,
    /// Objects of other namespaces do not exist for it.
    pub namespaces: Namespaces,
    /// Which labels its objects have.
    pub label_selector: LabelSelector,
    /// What else holds of its objects: all of these.
    pub conditions: Vec<FieldCondition>,
    /// If there are any, updates that change none of these are skipped, save when uid or deletionTimestamp change.
    pub fields: Vec<JsonPointer>,
    /// How often it is told every object again; none: as often as the informer says; zero: never.
    pub resync: Option<Duration>,
    /// How many notifications wait separately, see the module's words.
    pub backlog_limit: usize,
    /// Who answers for the superseded states that wait with them; one for all listeners of one owner. When it is full, notifications
    /// merge as they do beyond the limit.
    pub account: BacklogAccount,
}

/// The consumer's end: takes notifications, one consumer at a time. All else is on the [`ListenerHandle`] that it
/// dereferences to. Dropped, it is removed from the informer, and what waits is dropped too.
///
/// It may be handed from one consumer to the next, which then goes on where the other stopped, after
/// [`ListenerHandle::abandon_in_flight`].
#[derive(Debug)]
pub struct Listener {
    handle: ListenerHandle,
}

/// Everything about a listener but taking from it. Clones are handles of the same one and do not keep it registered.
#[derive(Clone)]
pub struct ListenerHandle {
    shared: Arc<Shared>,
    processor: Arc<Processor>,
}

/// A look at a listener's backlog.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListenerStats {
    /// Notifications that wait, but for dead letters.
    pub pending: usize,
    /// Objects that are in flight.
    pub in_flight: usize,
    /// Objects that are backing off.
    pub backing_off: usize,
    /// Objects that wait until they are asked for.
    pub deferred: usize,
    /// Dead letters.
    pub parked: usize,
    /// Notifications that were merged away, ever.
    pub merged: u64,
    /// Deliveries that ended in [`Outcome::Done`], ever.
    pub delivered: u64,
    /// Deliveries that ended in [`Outcome::Retry`], ever.
    pub retried: u64,
    /// How long the oldest notification that is ready, backing off or deferred has waited.
    pub oldest_age: Duration,
}

// === impl ListenerConfig ===

impl Default for ListenerConfig {
    fn default() -> Self {
        Self {
            name: String::new(),
            namespaces: Namespaces::All,
            label_selector: LabelSelector::everything(),
            conditions: Vec::new(),
            fields: Vec::new(),
            resync: None,
            backlog_limit: 1024,
            account: BacklogAccount::default(),
        }
    }
}

// === impl Listener ===

impl Listener {
    pub(crate) fn new(shared: Arc<Shared>, processor: Arc<Processor>) -> Self {
        Self { handle: ListenerHandle { shared, processor } }
    }

    /// Waits for the oldest ready object's next notification; the object is in flight from then on, and nothing more of it comes
    /// until [`ListenerHandle::finish`].
    ///
    /// `None` once the informer has stopped. Cancelling the wait loses nothing.
    pub async fn next(&mut self) -> Option<Delivery> {
        let shared = &self.handle.shared;
        loop {
            let (is_loading, next_due) = {
                let mut state = shared.state.lock();
                if state.is_closed {
                    return None;
                }
                if state.early.is_some() {
                    (true, None)
                } else if let Some(delivery) = state.backlog.take() {
                    return Some(delivery);
                } else {
                    (false, state.backlog.next_due())
                }
            };
            if is_loading {
                // A snapshot comes first, and a long one is matched here.
                let has_more = shared.go_on_taking_in(&mut shared.loading.lock(), SLICE);
                if has_more {
                    tokio::task::yield_now().await;
                    continue;
                }
                if shared.state.lock().early.is_none() {
                    continue;
                }
            }
            // There is one consumer, so a wake-up between the look and the wait is kept for it.
            match next_due {
                Some(due) => {
                    tokio::select! {
                        () = shared.wake.notified() => {}
                        () = tokio::time::sleep_until(due) => {}
                    }
                }
                None => shared.wake.notified().await,
            }
        }
    }

    /// Returns a handle for others.
    #[must_use]
    pub fn handle(&self) -> ListenerHandle {
        self.handle.clone()
    }
}

impl Deref for Listener {
    type Target = ListenerHandle;

    fn deref(&self) -> &ListenerHandle {
        &self.handle
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.handle.processor.remove(&self.handle.shared);
    }
}

// === impl ListenerHandle ===

impl ListenerHandle {
    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// Removes the listener from its informer: what waits is dropped, what is in flight goes on, and
    /// [`Listener::next`] answers `None`. Removing it again does nothing.
    pub fn remove(&self) {
        self.processor.remove(&self.shared);
    }

    /// Whether it was removed, or its informer has stopped.
    pub(crate) fn is_closed(&self) -> bool {
        self.shared.state.lock().is_closed
    }

    /// Returns the listener's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.shared.name
    }

    /// Says how a delivery went; its object may then go on. Ignored for an object that is not in flight.
    pub fn finish(&self, key: &ObjectKey, outcome: Outcome) {
        let mut state = self.shared.state.lock();
        let n_to_come = state.backlog.n_to_come();
        if !state.backlog.finish(key, outcome) {
            tracing::debug!(listener = self.name(), %key, "finished an object that is not in flight");
            return;
        }
        self.shared.look_for_sync(&state);
        let has_more = state.backlog.n_to_come() > n_to_come;
        drop(state);
        if has_more {
            self.shared.wake.notify_one();
        }
    }

    /// Takes the notification of an object that was [deferred](Outcome::Defer), which is in flight from then on; none if it is not
    /// deferred (any more): a replay or a narrowing came in between, or what happened since has cancelled it out.
    #[must_use]
    pub fn take_deferred(&self, key: &ObjectKey) -> Option<Delivery> {
        let mut state = self.shared.state.lock();
        if state.is_closed || state.early.is_some() {
            return None;
        }
        state.backlog.take_deferred(key)
    }

    /// Makes all that was [deferred](Outcome::Defer) ready. Returns how many objects.
    pub fn release_deferred(&self) -> usize {
        let n_released = self.shared.state.lock().backlog.release_deferred();
        if n_released > 0 {
            self.shared.wake.notify_one();
        }
        n_released
    }

    /// Gives back what is in flight: it is delivered again, to whoever calls [`Listener::next`], and does not count as tried.
    /// Returns how many.
    pub fn abandon_in_flight(&self) -> usize {
        let mut state = self.shared.state.lock();
        let n_abandoned = state.backlog.abandon_in_flight();
        self.shared.look_for_sync(&state);
        drop(state);
        self.shared.wake.notify_one();
        n_abandoned
    }

    /// Starts over: drops the backlog, but for deletes of objects that are not there any more, and tells all objects that are there
    /// as initial adds. Dead letters and counts of attempts are forgotten; the listener syncs anew.
    ///
    /// What is in flight stays so; it is not delivered again, whatever `finish` says, save a delete of an object that is gone.
    pub fn replay(&self) {
        let shared = &self.shared;
        let mut loading = shared.loading.lock();
        let snapshot = self.processor.block_deltas(|indexer| {
            shared.begin_early();
            indexer.snapshot(&shared.namespaces.read())
        });
        shared.begin_sync();
        shared.take_in(&mut loading, snapshot, true);
    }

    /// Changes which namespaces the listener sees. Objects that become visible are told as initial adds; those that are not
    /// visible any more are silently forgotten, with all that waits for them.
    pub fn set_namespaces(&self, namespaces: Namespaces) {
        let shared = &self.shared;
        let mut loading = shared.loading.lock();
        if *shared.namespaces.read() == namespaces {
            return;
        }
        // What is being taken in is of what was visible before.
        shared.go_on_taking_in(&mut loading, usize::MAX);
        let snapshot = self.processor.block_deltas(|indexer| {
            let mut current = shared.namespaces.write();
            let before = std::mem::replace(&mut *current, namespaces.clone());
            shared.begin_early();
            let mut snapshot = match (&before, &*current) {
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
            // What becomes visible is handled before the listener counts as synced again.
            shared.begin_sync();
        }
        shared.take_in(&mut loading, snapshot, false);
    }

    /// Returns which namespaces the listener sees.
    #[must_use]
    pub fn namespaces(&self) -> Namespaces {
        self.shared.namespaces.read().clone()
    }

    /// Takes over, in front of everything, the deletes that wait for `old`, a listener of the same informer that is given up: those of
    /// objects that it was told of and that this one does not see. To be called before the first `next`.
    pub fn inherit_deletes(&self, old: Listener) {
        let deletes = {
            let mut state = old.shared.state.lock();
            // What happened while a snapshot was being taken in waits beside the backlog.
            let early = state.early.take();
            for (key, notification, arrived) in early.into_iter().flat_map(Backlog::into_notifications) {
                state.backlog.push(key, notification, arrived);
            }
            std::mem::replace(&mut state.backlog, Backlog::new(0, BacklogAccount::default())).into_deletes()
        };
        drop(old);
        let namespaces = self.shared.namespaces.read().clone();
        let mut state = self.shared.state.lock();
        let deletes: Vec<_> =
            deletes.into_iter().filter(|(key, _)| namespaces.contains(key.namespace())).collect();
        state.backlog.push_to_front(deletes, Instant::now());
        drop(state);
        self.shared.wake.notify_one();
    }

    /// Whether the informer has synced and every initial add was finished, be it by parking. Sticky until a replay,
    /// or until more becomes visible.
    #[must_use]
    pub fn has_synced(&self) -> bool {
        *self.shared.sync.borrow() == Sync::Synced
    }

    /// Waits until [`ListenerHandle::has_synced`]; answers false when the listener was removed or the informer stopped instead.
    pub async fn wait_for_sync(&self) -> bool {
        let mut sync = self.shared.sync.subscribe();
        // The sender is in what this handle holds.
        sync.wait_for(|sync| *sync != Sync::Waiting).await.is_ok_and(|sync| *sync == Sync::Synced)
    }

    /// Returns a look at the backlog.
    #[must_use]
    pub fn stats(&self) -> ListenerStats {
        let state = self.shared.state.lock();
        let backlog = &state.backlog;
        ListenerStats {
            pending: backlog.n_waiting() + state.early.as_ref().map_or(0, Backlog::n_waiting),
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

    /// Returns the keys of the dead letters, sorted.
    #[must_use]
    pub fn parked(&self) -> Vec<ObjectKey> {
        self.shared.state.lock().backlog.parked()
    }

    /// Tries all dead letters again, with a fresh count of attempts. Returns how many.
    pub fn retry_parked(&self) -> usize {
        let n_parked = self.shared.state.lock().backlog.retry_parked();
        self.shared.wake.notify_one();
        n_parked
    }
}

impl fmt::Debug for ListenerHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ListenerHandle({})", self.shared.name)
    }
}

#[cfg(test)]
pub(crate) mod tests;

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
//! **Pull.** Nothing is called back: the consumer takes with [`Listener::next`] and answers with
//! [`ListenerHandle::finish`]. Dropping the listener removes it, and its backlog.

mod backlog;
mod filter;
mod merge;
mod notification;

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Mutex, RwLock};
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

use crate::json_pointer::JsonPointer;
use crate::names::ObjectKey;
use crate::namespaces::Namespaces;
use crate::object::Object;
use crate::processor::Processor;
use crate::selector::{FieldCondition, LabelSelector};

use self::backlog::Backlog;
pub(crate) use self::filter::Change;
use self::filter::Filter;
pub use self::notification::{Delivery, Notification, Outcome};

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
    /// Dead letters.
    pub parked: usize,
    /// Notifications that were merged away, ever.
    pub merged: u64,
    /// Deliveries that ended in [`Outcome::Done`], ever.
    pub delivered: u64,
    /// Deliveries that ended in [`Outcome::Retry`], ever.
    pub retried: u64,
    /// How long the oldest notification that is ready or backing off has waited.
    pub oldest_age: Duration,
}

/// What informer, consumer and handles share.
pub(crate) struct Shared {
    name: String,
    filter: Filter,
    resync: Option<Duration>,
    /// Written only while deltas are blocked.
    namespaces: RwLock<Namespaces>,
    state: Mutex<State>,
    wake: Notify,
    sync: watch::Sender<Sync>,
    /// Held while a snapshot is taken in: one at a time.
    loading: Mutex<()>,
}

struct State {
    backlog: Backlog,
    /// What happens while a snapshot is being matched, outside of all locks; it goes behind the snapshot.
    early: Option<Vec<(ObjectKey, Notification, Instant)>>,
    informer_has_synced: bool,
    is_closed: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sync {
    Waiting,
    Synced,
    Closed,
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
            let next_due = {
                let mut state = shared.state.lock();
                if state.is_closed {
                    return None;
                }
                if state.early.is_some() {
                    None
                } else if let Some(delivery) = state.backlog.take(Instant::now()) {
                    return Some(delivery);
                } else {
                    state.backlog.next_due()
                }
            };
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
    /// Returns the listener's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.shared.name
    }

    /// Says how a delivery went; its object may then go on. Ignored for an object that is not in flight.
    pub fn finish(&self, key: &ObjectKey, outcome: Outcome) {
        let mut state = self.shared.state.lock();
        if !state.backlog.finish(key, outcome, Instant::now()) {
            tracing::debug!(listener = self.name(), %key, "finished an object that is not in flight");
            return;
        }
        self.shared.look_for_sync(&state);
        drop(state);
        self.shared.wake.notify_one();
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
        let _one_at_a_time = shared.loading.lock();
        let snapshot = self.processor.block_deltas(|indexer| {
            shared.state.lock().early = Some(Vec::new());
            indexer.snapshot(&shared.namespaces.read())
        });
        let visible = shared.matching(snapshot);
        let mut state = shared.state.lock();
        let is_visible = |key: &ObjectKey| visible.binary_search_by(|object| object.key().cmp(key)).is_ok();
        state.backlog.reset_for_replay(is_visible);
        shared.sync.send_if_modified(|sync| {
            let was_synced = *sync == Sync::Synced;
            if was_synced {
                *sync = Sync::Waiting;
            }
            was_synced
        });
        shared.load(&mut state, visible);
    }

    /// Changes which namespaces the listener sees. Objects that become visible are told as initial adds; those that are not
    /// visible any more are silently forgotten, with all that waits for them.
    pub fn set_namespaces(&self, namespaces: Namespaces) {
        let shared = &self.shared;
        let _one_at_a_time = shared.loading.lock();
        if *shared.namespaces.read() == namespaces {
            return;
        }
        let snapshot = self.processor.block_deltas(|indexer| {
            let mut current = shared.namespaces.write();
            let before = std::mem::replace(&mut *current, namespaces.clone());
            shared.state.lock().early = Some(Vec::new());
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
        let visible = shared.matching(snapshot);
        let mut state = shared.state.lock();
        state.backlog.drop_invisible(|key| namespaces.contains(key.namespace()));
        shared.load(&mut state, visible);
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
            std::mem::replace(&mut state.backlog, Backlog::new(0)).into_deletes()
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

    /// Whether the informer has synced and every initial add was finished, be it by parking. Sticky until a replay.
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
            pending: backlog.n_waiting() + state.early.as_ref().map_or(0, Vec::len),
            in_flight: backlog.n_in_flight(),
            backing_off: backlog.n_backing_off(),
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

// === impl Shared ===

impl Shared {
    /// Makes a listener that takes what happens from now on, but delivers nothing until [`Shared::begin`].
    pub(crate) fn new(config: ListenerConfig, informer_has_synced: bool) -> Self {
        let ListenerConfig { name, namespaces, label_selector, conditions, fields, resync, backlog_limit } =
            config;
        Self {
            name,
            filter: Filter::new(label_selector, conditions, fields),
            resync,
            namespaces: RwLock::new(namespaces),
            state: Mutex::new(State {
                backlog: Backlog::new(backlog_limit),
                early: Some(Vec::new()),
                informer_has_synced,
                is_closed: false,
            }),
            wake: Notify::new(),
            sync: watch::Sender::new(Sync::Waiting),
            loading: Mutex::new(()),
        }
    }

    /// Takes the snapshot of the moment in which it was registered.
    pub(crate) fn begin(&self, snapshot: Vec<Object>) {
        let visible = self.matching(snapshot);
        self.load(&mut self.state.lock(), visible);
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn resync(&self) -> Option<Duration> {
        self.resync
    }

    pub(crate) fn namespaces(&self) -> Namespaces {
        self.namespaces.read().clone()
    }

    /// Tells the listener of a change. Called while deltas are blocked, in the order of the changes.
    pub(crate) fn tell(&self, change: &Change, now: Instant) {
        let object = match change {
            Change::Added { new, .. } | Change::Updated { new, .. } => new,
            Change::Deleted { old, .. } => old,
        };
        if !self.namespaces.read().contains(object.key().namespace()) {
            return;
        }
        let Some(notification) = self.filter.notification(change) else { return };
        let key = object.key().clone();
        let mut state = self.state.lock();
        if state.is_closed {
            return;
        }
        match &mut state.early {
            Some(early) => early.push((key, notification, now)),
            None => {
                state.backlog.push(key, notification, now);
                drop(state);
                self.wake.notify_one();
            }
        }
    }

    /// Tells the listener that the informer has the whole first list, all of which it has been told.
    pub(crate) fn informer_has_synced(&self) {
        let mut state = self.state.lock();
        state.informer_has_synced = true;
        self.look_for_sync(&state);
    }

    /// Ends the listener; what waits is dropped.
    pub(crate) fn close(&self) {
        let mut state = self.state.lock();
        state.is_closed = true;
        let dropped = std::mem::replace(&mut state.backlog, Backlog::new(0));
        state.early = None;
        self.sync.send_replace(Sync::Closed);
        drop(state);
        drop(dropped);
        self.wake.notify_one();
    }

    fn matching(&self, mut snapshot: Vec<Object>) -> Vec<Object> {
        if !self.filter.is_everything() {
            snapshot.retain(|object| self.filter.matches(object));
        }
        snapshot
    }

    /// Ends the taking in of a snapshot: its objects as initial adds, then what happened since.
    fn load(&self, state: &mut State, visible: Vec<Object>) {
        let early = state.early.take().unwrap_or_default();
        if state.is_closed {
            return;
        }
        let now = Instant::now();
        for object in visible {
            let key = object.key().clone();
            state.backlog.push(key, Notification::Added { object, is_in_initial_list: true }, now);
        }
        for (key, notification, arrived) in early {
            state.backlog.push(key, notification, arrived);
        }
        self.look_for_sync(state);
        self.wake.notify_one();
    }

    fn look_for_sync(&self, state: &State) {
        if state.informer_has_synced && state.early.is_none() && state.backlog.n_initial() == 0 {
            self.sync.send_if_modified(|sync| {
                let is_news = *sync == Sync::Waiting;
                if is_news {
                    *sync = Sync::Synced;
                }
                is_news
            });
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;

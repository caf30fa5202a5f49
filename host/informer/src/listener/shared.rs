//! What the informer, the consumer and the handles of one listener share.

use std::sync::Arc;
use std::time::Duration;
use std::vec;

use parking_lot::{Mutex, RwLock};
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

use super::ListenerConfig;
use super::account::BacklogAccount;
use super::backlog::Backlog;
use super::filter::{Change, Filter, Verdict};
use super::matching::Plan;
use super::notification::Notification;
use crate::names::ObjectKey;
use crate::namespaces::Namespaces;
use crate::object::Object;

/// What informer, consumer and handles share.
pub(crate) struct Shared {
    pub(super) name: String,
    filter: Filter,
    resync: Option<Duration>,
    /// Written only while deltas are blocked.
    pub(super) namespaces: RwLock<Namespaces>,
    pub(super) state: Mutex<State>,
    pub(super) wake: Notify,
    pub(super) sync: watch::Sender<Sync>,
    /// The snapshot that is being taken in: one at a time. Taken before deltas are blocked, and before the state.
    pub(super) loading: Mutex<Option<Loading>>,
}

/// A snapshot on its way into the backlog.
pub(super) struct Loading {
    left: vec::IntoIter<Object>,
    visible: Vec<Object>,
    /// What waits is dropped for it.
    is_replay: bool,
}

pub(super) struct State {
    pub(super) backlog: Backlog,
    /// What happens while a snapshot is being matched, outside of all locks; it goes behind the snapshot. Nothing is delivered meanwhile.
    pub(super) early: Option<Backlog>,
    informer_has_synced: bool,
    pub(super) is_closed: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sync {
    Waiting,
    Synced,
    Closed,
}

/// How much of a snapshot is matched at a time, in bytes of text: about a millisecond's worth.
pub(super) const SLICE: usize = 1 << 20;

/// What an object counts as whose text is not looked into.
const UNREAD: usize = 64;

// === impl Shared ===

impl Shared {
    /// Makes a listener that takes what happens from now on, but delivers nothing until [`Shared::begin`].
    pub(crate) fn new(config: ListenerConfig, informer_has_synced: bool) -> Self {
        let ListenerConfig {
            name,
            namespaces,
            label_selector,
            conditions,
            fields,
            resync,
            backlog_limit,
            account,
        } = config;
        Self {
            name,
            filter: Filter::new(label_selector, conditions, fields),
            resync,
            namespaces: RwLock::new(namespaces),
            state: Mutex::new(State {
                backlog: Backlog::new(backlog_limit, account.clone()),
                early: Some(Backlog::new(backlog_limit, account.clone())),
                informer_has_synced,
                is_closed: false,
            }),
            wake: Notify::new(),
            sync: watch::channel(Sync::Waiting).0,
            loading: Mutex::new(None),
        }
    }

    /// Takes the snapshot of the moment in which it was registered.
    pub(crate) fn begin(&self, snapshot: Vec<Object>) {
        self.take_in(&mut self.loading.lock(), snapshot, false);
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

    /// Returns what these listeners want to know of an object, taken together.
    pub(crate) fn plan(listeners: &[Arc<Self>]) -> Plan {
        Plan::new(listeners.iter().map(|listener| &listener.filter))
    }

    /// Whether the object is in a namespace that the listener sees.
    pub(crate) fn sees(&self, object: &Object) -> bool {
        self.namespaces.read().contains(object.key().namespace())
    }

    /// Finds out what a change is to this listener alone.
    pub(crate) fn judge(&self, change: &Change) -> Verdict {
        self.filter.judge(change)
    }

    /// Gives the listener what a change is to it. Called while deltas are blocked, in the order of the changes.
    pub(crate) fn tell(&self, change: &Change, verdict: Verdict, now: Instant) {
        if matches!(verdict, Verdict::Unknown | Verdict::Nothing) || !self.sees(change.object()) {
            return;
        }
        let notification = verdict.notification(change);
        let key = change.object().key();
        let mut state = self.state.lock();
        if state.is_closed {
            return;
        }
        let is_early = state.early.is_some();
        let State { backlog, early, .. } = &mut *state;
        let backlog = early.as_mut().unwrap_or(backlog);
        match (notification, change) {
            (Some(notification), _) => {
                backlog.push(key.clone(), notification, now);
                drop(state);
                if !is_early {
                    self.wake.notify_one();
                }
            }
            (None, Change::Updated { old, new, .. }) => backlog.supersede(old, new),
            (None, _) => {}
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
        let dropped = std::mem::replace(&mut state.backlog, Backlog::new(0, BacklogAccount::default()));
        let early = state.early.take();
        self.sync.send_replace(Sync::Closed);
        drop(state);
        drop((dropped, early));
        self.wake.notify_one();
    }

    /// From now on what happens goes behind the snapshot of this moment. Called while deltas are blocked.
    ///
    /// Where another snapshot is still being taken in, that is given up, and what happened since waits with what waited before it.
    pub(super) fn begin_early(&self) {
        let mut state = self.state.lock();
        let early = state.backlog.new_like();
        for (key, notification, arrived) in
            state.early.replace(early).into_iter().flat_map(Backlog::into_notifications)
        {
            state.backlog.push(key, notification, arrived);
        }
    }

    /// Begins to take in a snapshot of the moment in which [`State::early`] was set; if it is of a replay, what waits is dropped for it. A long
    /// one is taken in by the consumer that waits for notifications, a slice of work at a time.
    pub(super) fn take_in(&self, loading: &mut Option<Loading>, snapshot: Vec<Object>, is_replay: bool) {
        *loading = Some(Loading { left: snapshot.into_iter(), visible: Vec::new(), is_replay });
        self.go_on_taking_in(loading, SLICE);
        self.wake.notify_one();
    }

    /// Goes on with taking in a snapshot; answers whether there is more of it.
    pub(super) fn go_on_taking_in(&self, loading: &mut Option<Loading>, work: usize) -> bool {
        let Some(begun) = loading else { return false };
        if !self.state.lock().is_closed {
            if !begun.go_on(&self.filter, work) {
                return true;
            }
            self.load(std::mem::take(&mut begun.visible), begun.is_replay);
        }
        *loading = None;
        false
    }

    /// Ends the taking in of a snapshot: its objects as initial adds, then what happened since.
    fn load(&self, visible: Vec<Object>, is_replay: bool) {
        let mut state = self.state.lock();
        let Some(early) = state.early.take() else { return };
        if state.is_closed {
            return;
        }
        if is_replay {
            let is_visible =
                |key: &ObjectKey| visible.binary_search_by(|object| object.key().cmp(key)).is_ok();
            state.backlog.reset_for_replay(is_visible);
        }
        let now = Instant::now();
        for object in visible {
            let key = object.key().clone();
            state.backlog.push(key, Notification::Added { object, is_in_initial_list: true }, now);
        }
        for (key, notification, arrived) in early.into_notifications() {
            state.backlog.push(key, notification, arrived);
        }
        self.look_for_sync(&state);
        self.wake.notify_one();
    }

    /// Initial adds are about to come: what was synced is not, until they are handled.
    pub(super) fn begin_sync(&self) {
        self.sync.send_if_modified(|sync| {
            let was_synced = *sync == Sync::Synced;
            if was_synced {
                *sync = Sync::Waiting;
            }
            was_synced
        });
    }

    pub(super) fn look_for_sync(&self, state: &State) {
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

// === impl Loading ===

impl Loading {
    /// Matches some of the snapshot; answers whether that was all of it.
    fn go_on(&mut self, filter: &Filter, work: usize) -> bool {
        if filter.is_everything() && self.visible.is_empty() {
            self.visible = std::mem::take(&mut self.left).collect();
            return true;
        }
        let mut n_left = work;
        while n_left > 0 {
            let Some(object) = self.left.next() else { return true };
            let length = if filter.conditions.is_empty() { UNREAD } else { object.json_length() };
            n_left = n_left.saturating_sub(length.max(UNREAD));
            if filter.matches(&object) {
                self.visible.push(object);
            }
        }
        self.left.as_slice().is_empty()
    }
}

//! What the informer, the consumer and the handles of one listener share.

use std::time::Duration;

use parking_lot::{Mutex, RwLock};
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

use super::ListenerConfig;
use super::backlog::Backlog;
use super::filter::{Change, Filter};
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
    /// Held while a snapshot is taken in: one at a time.
    pub(super) loading: Mutex<()>,
}

pub(super) struct State {
    pub(super) backlog: Backlog,
    /// What happens while a snapshot is being matched, outside of all locks; it goes behind the snapshot.
    pub(super) early: Option<Vec<(ObjectKey, Notification, Instant)>>,
    informer_has_synced: bool,
    pub(super) is_closed: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sync {
    Waiting,
    Synced,
    Closed,
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
            sync: watch::channel(Sync::Waiting).0,
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

    pub(super) fn matching(&self, mut snapshot: Vec<Object>) -> Vec<Object> {
        if !self.filter.is_everything() {
            snapshot.retain(|object| self.filter.matches(object));
        }
        snapshot
    }

    /// Ends the taking in of a snapshot: its objects as initial adds, then what happened since.
    pub(super) fn load(&self, state: &mut State, visible: Vec<Object>) {
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

//! The state that the informer, the consumer and the handles of one listener share.

use std::sync::Arc;

use oarlock_json::JsonPointer;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::ListenerConfig;
use super::account::BacklogAccount;
use super::backlog::Backlog;
use super::change::Change;
use super::decision::Decision;
use super::filter::Filter;
use super::initial_values::{DeclaredFields, PlannedFields};
use super::matching::MatchPlan;
use super::snapshot::SnapshotLoader;
use super::values::NotificationFields;
use crate::namespaces::Namespaces;
use crate::object::Object;

/// The state that the informer, the consumer and the handles of one listener share.
pub(crate) struct ListenerShared {
    pub(super) name: Box<str>,
    pub(super) filter: Filter,
    /// The declared fields, shared with the listeners that declare the same.
    pub(super) fields: Option<Arc<DeclaredFields>>,
    pub(super) state: Mutex<ListenerState>,
    /// Wakes the consumer in [`Listener::next`](super::Listener::next).
    pub(super) wake: Notify,
    /// Notified when `state.sync` changes.
    pub(super) sync_changed: Notify,
    /// Loads a snapshot, one at a time. Locked before deltas are blocked, and before `state`.
    pub(super) loader: Mutex<Option<SnapshotLoader>>,
}

/// The state of a listener that its lock guards.
pub(super) struct ListenerState {
    pub(super) backlog: Backlog,
    /// The notifications since the snapshot that is being loaded; they follow the snapshot. While this is
    /// set, nothing is delivered.
    pub(super) since_snapshot: Option<Backlog>,
    pub(super) sync: SyncState,
    /// Written only while deltas are blocked.
    pub(super) namespaces: Namespaces,
}

/// How far a listener has synced. The only way back is from `Synced` to `InitialAddsPending`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SyncState {
    /// The informer has not synced.
    InformerPending,
    /// The informer has synced. Initial adds wait, or a snapshot is being loaded.
    InitialAddsPending,
    /// All initial adds are finished.
    Synced,
    /// The listener was removed, or its informer has stopped.
    Closed,
}

// === impl ListenerShared ===

impl ListenerShared {
    /// Returns a listener that records all changes from now on. It delivers nothing before
    /// [`ListenerShared::load_initial_snapshot`].
    pub(crate) fn new(
        config: ListenerConfig,
        declared: Option<Arc<DeclaredFields>>,
        has_informer_synced: bool,
    ) -> Self {
        let ListenerConfig {
            name,
            namespaces,
            label_selector,
            conditions,
            fields,
            resync: _,
            backlog_limit,
            account,
            keys,
        } = config;
        let backlog = Backlog::new(backlog_limit, account).with_keys(keys);
        Self {
            name: name.into(),
            filter: Filter::new(label_selector, conditions, fields),
            fields: declared,
            state: Mutex::new(ListenerState {
                since_snapshot: Some(backlog.new_like()),
                backlog,
                sync: if has_informer_synced {
                    SyncState::InitialAddsPending
                } else {
                    SyncState::InformerPending
                },
                namespaces,
            }),
            wake: Notify::new(),
            sync_changed: Notify::new(),
            loader: Mutex::new(None),
        }
    }

    /// Returns the declared fields, if they are these.
    pub(crate) fn declared_if(&self, fields: &[JsonPointer]) -> Option<Arc<DeclaredFields>> {
        self.fields.clone().filter(|declared| declared.are(fields))
    }

    /// Sets where a new plan has the declared fields.
    pub(crate) fn set_planned(&self, planned: Option<PlannedFields>) {
        if let Some(declared) = &self.fields {
            declared.set_planned(planned);
        }
    }

    pub(crate) fn namespaces(&self) -> Namespaces {
        self.state.lock().namespaces.clone()
    }

    /// Merges the filters of these listeners.
    pub(crate) fn plan(listeners: &[Arc<Self>]) -> MatchPlan {
        MatchPlan::new(listeners.iter().map(|listener| &listener.filter))
    }

    /// Returns whether the listener sees the namespace of the object.
    pub(crate) fn sees(&self, object: &Object) -> bool {
        self.state.lock().namespaces.contains(object.key().namespace())
    }

    /// Decides on a change for this listener alone.
    pub(crate) fn check(&self, change: &Change) -> Decision {
        self.filter.check(change)
    }

    /// Appends the notification of a change, as decided, with the values of the declared fields. Called while
    /// deltas are blocked, in the order of the changes.
    pub(crate) fn notify(
        &self,
        change: &Change,
        decision: Decision,
        fields: impl FnOnce() -> NotificationFields,
        now: Instant,
    ) {
        if matches!(decision, Decision::NotChecked | Decision::NotMatching) {
            return;
        }
        let key = change.object().key();
        let mut state = self.state.lock();
        let ListenerState { backlog, since_snapshot, sync, namespaces } = &mut *state;
        if *sync == SyncState::Closed || !namespaces.contains(key.namespace()) {
            return;
        }
        let is_loading = since_snapshot.is_some();
        let backlog = since_snapshot.as_mut().unwrap_or(backlog);
        match (decision.notification(change), change) {
            (Some(notification), _) => {
                backlog.push(key.clone(), notification, fields(), now);
                drop(state);
                if !is_loading {
                    self.wake.notify_one();
                }
            }
            (None, Change::Updated { old, new, .. }) => backlog.supersede(old, new),
            (None, _) => {}
        }
    }

    /// Records that the informer has synced. The listener has received all of the first list.
    pub(crate) fn informer_has_synced(&self) {
        let mut state = self.state.lock();
        if state.sync == SyncState::InformerPending {
            state.sync = SyncState::InitialAddsPending;
        }
        self.update_sync(&mut state);
    }

    /// Closes the listener and drops its backlog.
    pub(crate) fn close(&self) {
        let mut state = self.state.lock();
        state.sync = SyncState::Closed;
        let dropped = std::mem::replace(&mut state.backlog, Backlog::new(0, BacklogAccount::default()));
        let since_snapshot = state.since_snapshot.take();
        drop(state);
        drop((dropped, since_snapshot));
        self.sync_changed.notify_waiters();
        self.wake.notify_one();
    }

    /// Records that a synced listener is about to receive initial adds: it is not synced until they are
    /// finished.
    pub(super) fn expect_initial_adds(&self) {
        let mut state = self.state.lock();
        if state.sync == SyncState::Synced {
            state.sync = SyncState::InitialAddsPending;
        }
    }

    /// Marks the listener as synced if the informer has synced and all initial adds are finished.
    pub(super) fn update_sync(&self, state: &mut ListenerState) {
        if state.sync == SyncState::InitialAddsPending
            && state.since_snapshot.is_none()
            && state.backlog.n_initial() == 0
        {
            state.sync = SyncState::Synced;
            if let Some(fields) = &self.fields {
                fields.forget();
            }
            self.sync_changed.notify_waiters();
        }
    }

    /// Waits until the listener has synced; returns false when it is closed instead.
    pub(super) async fn wait_for_sync(&self) -> bool {
        loop {
            let changed = self.sync_changed.notified();
            let sync = self.state.lock().sync;
            match sync {
                SyncState::Synced => return true,
                SyncState::Closed => return false,
                SyncState::InformerPending | SyncState::InitialAddsPending => changed.await,
            }
        }
    }
}

//! Loads a snapshot of the cache into a listener's backlog, as initial adds.
//!
//! A snapshot is loaded at the registration, at a replay, when the listener begins after another one, and
//! when more namespaces become visible. It is taken while deltas are blocked; later changes are recorded
//! beside the backlog. The snapshot is matched in slices of work without any lock that the informer takes,
//! and a long one by the consumer that waits for the next notification. Then the initial adds are appended to
//! the backlog, and after them the recorded changes.

use std::vec;

use tokio::time::Instant;

use super::account::BacklogAccount;
use super::backlog::Backlog;
use super::filter::Filter;
use super::notification::Notification;
use super::shared::{ListenerShared, SyncState};
use crate::names::ObjectKey;
use crate::object::Object;

/// How much of a snapshot is matched at a time, in bytes of text: about a millisecond's worth.
pub(super) const SLICE: usize = 1 << 20;

/// The work for an object whose text is not read.
const UNREAD: usize = 64;

/// A snapshot that is being matched.
pub(super) struct SnapshotLoader {
    left: vec::IntoIter<Object>,
    matching: Vec<Object>,
    /// The snapshot replaces the backlog.
    is_replay: bool,
}

/// What waited for a listener that is removed.
pub(super) struct TakenBacklog {
    backlog: Backlog,
    /// The changes since a snapshot that was being loaded.
    since_snapshot: Option<Backlog>,
}

// === impl ListenerShared ===

impl ListenerShared {
    /// Loads the snapshot that was taken when the listener was registered.
    pub(crate) fn load_initial_snapshot(&self, snapshot: Vec<Object>) {
        self.load_snapshot(&mut self.loader.lock(), snapshot, false);
    }

    /// Records changes beside the backlog from now on. Called while deltas are blocked, when a snapshot is
    /// taken.
    ///
    /// A snapshot that is still being loaded is dropped; the changes since then are appended to the backlog.
    pub(super) fn start_snapshot(&self) {
        let mut state = self.state.lock();
        let since_snapshot = state.backlog.new_like();
        let recorded = state.since_snapshot.replace(since_snapshot);
        state.backlog.append(recorded);
    }

    /// Records changes from now on, for a snapshot that is taken while deltas are blocked. Returns what
    /// waits, to be dropped later. No notification was taken before.
    pub(super) fn start_again(&self) -> [Option<Backlog>; 2] {
        let mut state = self.state.lock();
        let (backlog, since_snapshot) = (state.backlog.new_like(), state.backlog.new_like());
        let dropped = std::mem::replace(&mut state.backlog, backlog);
        [Some(dropped), state.since_snapshot.replace(since_snapshot)]
    }

    /// Takes all that waits or is in flight, of a listener that will be removed.
    pub(super) fn take_backlog(&self) -> TakenBacklog {
        let mut state = self.state.lock();
        let none = Backlog::new(0, BacklogAccount::default());
        TakenBacklog {
            backlog: std::mem::replace(&mut state.backlog, none),
            since_snapshot: state.since_snapshot.take(),
        }
    }

    /// Begins to load a snapshot that was taken at [`ListenerShared::start_snapshot`]. For a replay the
    /// backlog is dropped. The consumer that waits for the next notification loads the rest of a long
    /// snapshot.
    pub(super) fn load_snapshot(
        &self,
        loader: &mut Option<SnapshotLoader>,
        snapshot: Vec<Object>,
        is_replay: bool,
    ) {
        *loader = Some(SnapshotLoader { left: snapshot.into_iter(), matching: Vec::new(), is_replay });
        self.continue_loading(loader, SLICE);
        self.wake.notify_one();
    }

    /// Continues to load a snapshot, if one is being loaded; returns whether more is left.
    pub(super) fn continue_loading(&self, loader: &mut Option<SnapshotLoader>, work: usize) -> bool {
        let Some(begun) = loader else { return false };
        if self.state.lock().sync != SyncState::Closed {
            if !begun.match_some(&self.filter, work) {
                return true;
            }
            self.finish_loading(std::mem::take(&mut begun.matching), begun.is_replay);
        }
        *loader = None;
        false
    }

    /// Appends the initial adds of a snapshot to the backlog, and then the changes since the snapshot.
    fn finish_loading(&self, objects: Vec<Object>, is_replay: bool) {
        let mut state = self.state.lock();
        let Some(since_snapshot) = state.since_snapshot.take() else { return };
        if state.sync == SyncState::Closed {
            return;
        }
        if is_replay {
            let is_visible =
                |key: &ObjectKey| objects.binary_search_by(|object| object.key().cmp(key)).is_ok();
            state.backlog.reset_for_replay(is_visible);
        }
        state.backlog.push_snapshot(objects, Instant::now());
        state.backlog.append(Some(since_snapshot));
        self.update_sync(&mut state);
        self.wake.notify_one();
    }
}

// === impl TakenBacklog ===

impl TakenBacklog {
    /// Returns the changes in their order, as [`Backlog::into_changes`] does.
    pub(super) fn into_changes(mut self, with_keys: bool) -> Vec<(ObjectKey, Notification)> {
        self.backlog.append(self.since_snapshot.take());
        self.backlog.into_changes(with_keys)
    }
}

// === impl SnapshotLoader ===

impl SnapshotLoader {
    /// Returns how many objects are left, or match.
    pub(super) fn n_objects(&self) -> usize {
        self.left.len() + self.matching.len()
    }

    /// Matches some of the snapshot; returns whether all of it is matched.
    fn match_some(&mut self, filter: &Filter, work: usize) -> bool {
        if filter.matches_everything() && self.matching.is_empty() {
            self.matching = std::mem::take(&mut self.left).collect();
            return true;
        }
        let mut n_left = work;
        while n_left > 0 {
            let Some(object) = self.left.next() else { return true };
            let length = if filter.conditions.is_empty() { UNREAD } else { object.json_length() };
            n_left = n_left.saturating_sub(length.max(UNREAD));
            if filter.matches(&object) {
                self.matching.push(object);
            }
        }
        self.left.as_slice().is_empty()
    }
}

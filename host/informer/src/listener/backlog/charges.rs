//! The charges of a backlog to its account, for what its notifications hold: values of declared fields, and
//! states that the cache no longer has.

use std::collections::VecDeque;

use super::{Backlog, Pending};
use crate::listener::notification::Notification;
use crate::object::Object;

// === impl Backlog ===

impl Backlog {
    /// Records an update of an object that is skipped because it changes no declared field. If the account is
    /// full, the last notification that waits for the object takes over the new state. Otherwise the state
    /// that it carries is charged, since the cache no longer holds it. If none waits, the state that the
    /// notification in flight carries is charged.
    pub(in crate::listener) fn supersede(&mut self, before: &Object, now: &Object) {
        if self.n_waiting == 0 && self.in_flight.is_empty() {
            return;
        }
        self.queue_listed(now.key());
        let is_full = self.account.is_full();
        let Some(queue) = self.objects.get_mut(now.key()) else { return };
        let Some(last) = queue.waiting.back_mut() else {
            let in_flight = self.in_flight.get(now.key()).and_then(|it| it.pending.notification.new());
            if in_flight.is_some_and(|state| state.is_same(before)) {
                queue.n_outdated_bytes += before.json_length();
                self.charge(before.json_length());
            }
            return;
        };
        let charged_before = n_superseded_bytes(&last.notification) + queue.n_outdated_bytes;
        let state = match &mut last.notification {
            Notification::Added { object: new, .. } | Notification::Updated { new, .. } => new,
            Notification::Deleted { .. } => return,
        };
        let was_current = state.is_same(before);
        if is_full {
            let n_outdated_bytes = if was_current { 0 } else { state.json_length() };
            queue.n_outdated_bytes = queue.n_outdated_bytes.saturating_sub(n_outdated_bytes);
            *state = now.clone();
            last.is_merged = true;
        } else if was_current {
            queue.n_outdated_bytes += before.json_length();
        }
        let charged = n_superseded_bytes(&last.notification) + queue.n_outdated_bytes;
        self.refund(charged_before);
        self.charge(charged);
    }

    /// Charges bytes to the account.
    pub(super) fn charge(&mut self, n_bytes: usize) {
        self.charged += n_bytes;
        self.account.charge(n_bytes);
    }

    /// Takes bytes off the account.
    pub(super) fn refund(&mut self, n_bytes: usize) {
        self.charged -= n_bytes;
        self.account.refund(n_bytes);
    }
}

impl Drop for Backlog {
    fn drop(&mut self) {
        self.refund(self.charged);
    }
}

/// Returns how many bytes are charged for a notification: the values of declared fields, and the states that
/// it carries and the cache no longer holds.
pub(super) fn n_charged_bytes(pending: &Pending) -> usize {
    n_superseded_bytes(&pending.notification) + pending.fields.size()
}

/// Returns the size of the states that a notification carries and the cache no longer holds.
fn n_superseded_bytes(notification: &Notification) -> usize {
    match notification {
        Notification::Added { .. } => 0,
        Notification::Updated { old, new } if old.is_same(new) => 0,
        Notification::Updated { old: superseded, .. } | Notification::Deleted { object: superseded, .. } => {
            superseded.json_length()
        }
    }
}

pub(super) fn n_charged_bytes_in(queue: &VecDeque<Pending>) -> usize {
    queue.iter().map(n_charged_bytes).sum()
}

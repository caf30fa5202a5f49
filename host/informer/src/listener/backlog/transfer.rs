//! Operations on a whole backlog: replay, change of the visible namespaces, and moving notifications to
//! another backlog.

use std::collections::VecDeque;

use hashbrown::hash_map::Entry;
use tokio::time::Instant;

use super::charges::{n_charged_bytes, n_charged_bytes_in};
use super::{Backlog, MIDDLE_TICKET, ObjectQueue, ObjectState, Pending, Superseded};
use crate::listener::merge;
use crate::listener::notification::Notification;
use crate::listener::values::NotificationFields;
use crate::names::ObjectKey;

// === impl Backlog ===

impl Backlog {
    /// Drops all notifications save for the deletes of objects that are not visible, which become ready and
    /// count as never tried. For a consumer that collects keys, which needs no chain, updates and all deletes
    /// stay as well: the replay does not show the keys of their old states.
    ///
    /// Objects in flight stay in flight. Their deliveries are repeated only if they are such deletes.
    pub(in crate::listener) fn reset_for_replay(&mut self, is_visible: impl Fn(&ObjectKey) -> bool) {
        self.ready.clear();
        self.backing_off.clear();
        self.deferred.clear();
        self.n_waiting = 0;
        self.n_parked = 0;
        self.n_initial = 0;
        self.refund(self.charged);
        let mut kept = Vec::new();
        for (key, mut queue) in std::mem::take(&mut self.objects) {
            queue.n_outdated_bytes = 0;
            let merged = merge::fold(std::mem::take(&mut queue.waiting), self.keys.as_ref());
            let names_keys = self.keys.is_some();
            queue.waiting = merged
                .into_iter()
                .filter(|pending| match pending.notification {
                    Notification::Deleted { .. } => names_keys || !is_visible(&key),
                    Notification::Updated { .. } => names_keys,
                    Notification::Added { .. } => false,
                })
                .map(|pending| Pending { attempts: 0, counts_for_sync: false, is_initial: false, ..pending })
                .collect();
            self.charge(n_charged_bytes_in(&queue.waiting));
            if let Some(in_flight) = self.in_flight.get_mut(&key) {
                in_flight.pending.counts_for_sync = false;
                if in_flight.superseded == Superseded::No {
                    in_flight.superseded = Superseded::ByReplay;
                }
                let charged = n_charged_bytes(&in_flight.pending);
                self.charge(charged);
            } else if queue.waiting.is_empty() {
                continue;
            } else {
                queue.state = ObjectState::Ready;
            }
            kept.push((key, queue));
        }
        for (key, queue) in kept {
            self.n_waiting += queue.waiting.len();
            let is_ready = matches!(queue.state, ObjectState::Ready);
            self.objects.insert(key.clone(), queue);
            if is_ready {
                self.become_ready(key);
            }
        }
    }

    /// Drops all notifications that wait for objects that are not visible.
    pub(in crate::listener) fn drop_invisible(&mut self, is_visible: impl Fn(&ObjectKey) -> bool) {
        let keys: Vec<_> = self.objects.keys().filter(|key| !is_visible(key)).cloned().collect();
        let n_dropped = self.ready.retain_listed(&is_visible);
        self.n_waiting -= n_dropped;
        self.n_initial -= n_dropped;
        let mut released = 0;
        for key in keys {
            self.leave_ready(&key);
            let Some(queue) = self.objects.get_mut(&key) else { continue };
            let dropped = std::mem::take(&mut queue.waiting);
            self.n_waiting -= dropped.len();
            released += n_charged_bytes_in(&dropped);
            self.n_initial -= dropped.iter().filter(|pending| pending.counts_for_sync).count();
            match &mut queue.state {
                ObjectState::InFlight => {
                    if let Some(in_flight) = self.in_flight.get_mut(&key) {
                        in_flight.superseded = Superseded::ByNarrowing;
                    }
                    continue;
                }
                ObjectState::BackingOff { until } => {
                    let until = *until;
                    let ticket = dropped.front().map_or(0, |pending| pending.ticket);
                    self.backing_off.remove(&(until, ticket));
                }
                ObjectState::Deferred => {
                    self.deferred.remove(&key);
                }
                ObjectState::Parked => self.n_parked -= 1,
                ObjectState::Ready => {}
            }
            released += queue.n_outdated_bytes;
            self.objects.remove(&key);
        }
        self.refund(released);
        self.shrink();
    }

    /// Appends the notifications that wait in another backlog, in the order in which they came there. No
    /// consumer may have taken any of them.
    pub(in crate::listener) fn append(&mut self, recorded: Option<Self>) {
        let Some(mut recorded) = recorded else { return };
        self.n_merged += recorded.n_merged;
        let objects = std::mem::take(&mut recorded.objects).into_iter();
        let mut waiting: Vec<_> = objects
            .flat_map(|(key, queue)| queue.waiting.into_iter().map(move |it| (key.clone(), it)))
            .collect();
        waiting.sort_by_key(|(_, pending)| pending.ticket);
        for (key, pending) in waiting {
            self.push_last(key, pending);
        }
    }

    /// Returns the deletes that wait or are in flight, oldest first. With keys also the updates, if this
    /// consumer collects keys: initial adds do not show the keys of their old states.
    pub(in crate::listener) fn into_changes(mut self, with_keys: bool) -> Vec<(ObjectKey, Notification)> {
        self.abandon_in_flight();
        let keys = self.keys.take();
        let with_updates = with_keys && keys.is_some();
        let mut changes = Vec::new();
        for (key, queue) in std::mem::take(&mut self.objects) {
            let mut merged = merge::fold(queue.waiting, keys.as_ref());
            if !with_updates {
                merged.drain(..merged.len().saturating_sub(1));
            }
            merged.retain(|pending| match pending.notification {
                Notification::Deleted { .. } => true,
                Notification::Updated { .. } => with_updates,
                Notification::Added { .. } => false,
            });
            changes.extend(merged.into_iter().map(|pending| (key.clone(), pending)));
        }
        changes.sort_by_key(|(_, pending)| pending.ticket);
        changes.into_iter().map(|(key, pending)| (key, pending.notification)).collect()
    }

    /// Returns whether the consumer collects keys.
    pub(in crate::listener) fn collects_keys(&self) -> bool {
        self.keys.is_some()
    }

    /// Drops the delete of an object, if it was pushed to the front and is all that waits for the object. A
    /// consumer that collects keys receives it all the same.
    pub(super) fn drop_pushed_to_front(&mut self, key: &ObjectKey) {
        let Some(queue) = self.objects.get(key).filter(|_| self.keys.is_none()) else { return };
        let is_pushed_to_front = |pending: &Pending| {
            let is_delete = matches!(pending.notification, Notification::Deleted { .. });
            is_delete && pending.ticket < MIDDLE_TICKET && !pending.tried
        };
        let is_alone = matches!(queue.state, ObjectState::Ready) && queue.waiting.len() == 1;
        if !is_alone || !queue.waiting.iter().all(is_pushed_to_front) {
            return;
        }
        self.leave_ready(key);
        if let Some(ObjectQueue { waiting, n_outdated_bytes, .. }) = self.objects.remove(key) {
            self.n_waiting -= waiting.len();
            self.refund(n_charged_bytes_in(&waiting) + n_outdated_bytes);
        }
    }

    /// Puts notifications before all others, in their order. None of their objects is in the backlog.
    pub(in crate::listener) fn push_to_front(
        &mut self,
        notifications: Vec<(ObjectKey, Notification)>,
        now: Instant,
    ) {
        self.first_ticket -= notifications.len() as u64;
        self.n_waiting += notifications.len();
        let mut charged = 0;
        for (ticket, (key, notification)) in (self.first_ticket..).zip(notifications) {
            let pending = Pending {
                notification,
                fields: NotificationFields::default(),
                ticket,
                arrived: now,
                attempts: 0,
                tried: false,
                counts_for_sync: false,
                is_initial: false,
                is_merged: true,
            };
            charged += n_charged_bytes(&pending);
            match self.objects.entry(key) {
                Entry::Occupied(mut occupied) => occupied.get_mut().waiting.push_back(pending),
                Entry::Vacant(vacant) => {
                    self.ready.insert(ticket, vacant.key().clone(), false);
                    vacant.insert(ObjectQueue {
                        state: ObjectState::Ready,
                        waiting: VecDeque::from([pending]),
                        n_outdated_bytes: 0,
                    });
                }
            }
        }
        self.charge(charged);
    }
}

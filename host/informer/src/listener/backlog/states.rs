//! The states of an object in a backlog, and the transitions between them.

use std::collections::VecDeque;

use hashbrown::hash_map::EntryRef;
use tokio::time::Instant;

use super::charges::{n_charged_bytes, n_charged_bytes_in};
use super::{
    Backlog, InFlight, MAX_SPARE, MAX_SPARE_CAPACITY, ObjectQueue, ObjectState, Pending, Superseded,
};
use crate::listener::merge;
use crate::listener::notification::Notification;
use crate::names::ObjectKey;

// === impl Backlog ===

impl Backlog {
    /// Finishes a delivery behind which no other notification waits, the usual case; returns false in all
    /// other cases.
    pub(super) fn finish_last(&mut self, key: &ObjectKey) -> bool {
        let EntryRef::Occupied(entry) = self.objects.entry_ref(key) else { return false };
        let ObjectQueue { state: ObjectState::InFlight, waiting, n_outdated_bytes } = entry.get() else {
            return false;
        };
        if !waiting.is_empty() {
            return false;
        }
        let Some(InFlight { pending, .. }) = self.in_flight.remove(key) else { return false };
        let charged = n_charged_bytes(&pending) + n_outdated_bytes;
        self.n_initial -= usize::from(pending.counts_for_sync);
        self.n_delivered += 1;
        let ObjectQueue { waiting, .. } = entry.remove();
        self.refund(charged);
        self.keep_spare_queue(waiting);
        true
    }

    /// Returns an empty queue for an object: a kept one if there is one.
    pub(super) fn spare_queue(&mut self) -> VecDeque<Pending> {
        self.spare_queues.pop().unwrap_or_default()
    }

    /// Keeps an empty queue for the next object.
    pub(super) fn keep_spare_queue(&mut self, waiting: VecDeque<Pending>) {
        if self.spare_queues.len() < MAX_SPARE && (1..=MAX_SPARE_CAPACITY).contains(&waiting.capacity()) {
            self.spare_queues.push(waiting);
        }
    }

    /// Ends a flight. The caller puts the object into its next state.
    pub(super) fn end_flight(&mut self, key: &ObjectKey) -> Option<InFlight> {
        let in_flight = self.in_flight.remove(key)?;
        if let Some(queue) = self.objects.get_mut(key) {
            queue.state = ObjectState::Ready;
        }
        Some(in_flight)
    }

    /// Returns whether a delivery may be repeated after a replay or a change of the visible namespaces.
    pub(super) fn is_worth_retrying(
        &self,
        key: &ObjectKey,
        pending: &Pending,
        superseded: Superseded,
    ) -> bool {
        match superseded {
            Superseded::No => true,
            Superseded::ByNarrowing => false,
            Superseded::ByReplay if self.keys.is_some() => true,
            Superseded::ByReplay => {
                let is_there_again = self.objects.get(key).is_some_and(|queue| !queue.waiting.is_empty());
                matches!(pending.notification, Notification::Deleted { .. }) && !is_there_again
            }
        }
    }

    /// Ends a delivery that is not repeated: the object's next notification becomes ready, or the object is
    /// forgotten.
    pub(super) fn settle(&mut self, key: &ObjectKey, pending: &mut Pending) {
        self.n_initial -= usize::from(std::mem::take(&mut pending.counts_for_sync));
        self.refund(n_charged_bytes(pending));
        if self.objects.get(key).is_some_and(|queue| !queue.waiting.is_empty()) {
            self.become_ready(key.clone());
        } else if let Some(ObjectQueue { waiting, n_outdated_bytes, .. }) = self.objects.remove(key) {
            self.refund(n_outdated_bytes);
            self.keep_spare_queue(waiting);
        }
    }

    /// Returns a notification to the front of its object's queue.
    pub(super) fn put_back(&mut self, key: &ObjectKey, pending: Pending) {
        if let Some(queue) = self.objects.get_mut(key) {
            queue.waiting.push_front(pending);
            self.n_waiting += 1;
        }
    }

    /// Merges all notifications that wait for an object. There may be none afterwards.
    pub(super) fn merge_waiting(&mut self, key: &ObjectKey) {
        let Some(queue) = self.objects.get_mut(key) else { return };
        let before = queue.waiting.len();
        if before < 2 {
            return;
        }
        let initial =
            |queue: &VecDeque<Pending>| queue.iter().filter(|pending| pending.counts_for_sync).count();
        let n_initial = initial(&queue.waiting);
        let charged_before = n_charged_bytes_in(&queue.waiting) + std::mem::take(&mut queue.n_outdated_bytes);
        queue.waiting = merge::fold(std::mem::take(&mut queue.waiting), self.keys.as_ref()).into();
        let charged = n_charged_bytes_in(&queue.waiting);
        self.n_initial -= n_initial - initial(&queue.waiting);
        // An update to another uid may have become a delete and an add.
        self.n_waiting = self.n_waiting + queue.waiting.len() - before;
        self.n_merged += before.saturating_sub(queue.waiting.len()) as u64;
        self.refund(charged_before);
        self.charge(charged);
    }

    pub(super) fn reset_attempts(&mut self, key: &ObjectKey) {
        if let Some(first) = self.objects.get_mut(key).and_then(|queue| queue.waiting.front_mut()) {
            first.attempts = 0;
        }
    }

    /// Makes an object ready, or forgets it if no notification waits for it.
    pub(super) fn become_ready(&mut self, key: ObjectKey) {
        let Some(queue) = self.objects.get_mut(&key) else { return };
        if let Some(first) = queue.waiting.front() {
            let is_initial = first.is_initial && queue.waiting.len() == 1;
            self.ready.insert(first.ticket, key, is_initial);
            queue.state = ObjectState::Ready;
        } else {
            self.forget(&key);
        }
    }

    pub(super) fn leave_ready(&mut self, key: &ObjectKey) {
        let Some(queue) = self.objects.get(key) else { return };
        if let (ObjectState::Ready, Some(first)) = (&queue.state, queue.waiting.front()) {
            self.ready.remove(first.ticket);
        }
    }

    /// Makes the objects ready whose back-off has ended.
    pub(super) fn end_back_off(&mut self) {
        if self.backing_off.is_empty() {
            return;
        }
        let now = Instant::now();
        while let Some(entry) = self.backing_off.first_entry().filter(|entry| entry.key().0 <= now) {
            let key = entry.remove();
            self.become_ready(key);
        }
    }

    /// Puts an object into back-off, or forgets it if no notification waits for it.
    pub(super) fn back_off(&mut self, key: ObjectKey, until: Instant) {
        let Some(queue) = self.objects.get_mut(&key) else { return };
        if let Some(first) = queue.waiting.front() {
            queue.state = ObjectState::BackingOff { until };
            self.backing_off.insert((until, first.ticket), key);
        } else {
            self.forget(&key);
        }
    }

    /// Defers an object, or forgets it if no notification waits for it.
    pub(super) fn defer(&mut self, key: ObjectKey) {
        let Some(queue) = self.objects.get_mut(&key) else { return };
        if queue.waiting.is_empty() {
            self.deferred.remove(&key);
            self.objects.remove(&key);
        } else {
            queue.state = ObjectState::Deferred;
            self.deferred.insert(key);
        }
    }

    pub(super) fn leave_back_off(&mut self, key: &ObjectKey, until: Instant) {
        if let Some(first) = self.objects.get(key).and_then(|queue| queue.waiting.front()) {
            self.backing_off.remove(&(until, first.ticket));
        }
    }

    /// Forgets an object for which no notification waits.
    pub(super) fn forget(&mut self, key: &ObjectKey) {
        if let Some(ObjectQueue { n_outdated_bytes, .. }) = self.objects.remove(key) {
            self.refund(n_outdated_bytes);
        }
    }
}

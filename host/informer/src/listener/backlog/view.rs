//! What a backlog says about itself.

use std::time::Duration;

use tokio::time::Instant;

use super::Backlog;
use crate::listener::notification::Notification;

// === impl Backlog ===

impl Backlog {
    pub(in super::super) fn n_waiting(&self) -> usize {
        self.n_waiting - self.n_parked
    }

    /// Returns the notifications that wait, without initial adds.
    pub(in super::super) fn waiting_changes(&self) -> impl Iterator<Item = Notification> {
        let waiting = self.objects.values().flat_map(|queue| &queue.waiting);
        waiting.filter(|pending| !pending.is_initial).map(|pending| pending.notification.clone())
    }

    pub(in super::super) fn n_parked(&self) -> usize {
        self.n_parked
    }

    pub(in super::super) fn n_in_flight(&self) -> usize {
        self.in_flight.len()
    }

    pub(in super::super) fn n_backing_off(&self) -> usize {
        self.backing_off.len()
    }

    #[cfg(test)]
    pub(in super::super) fn is_empty(&self) -> bool {
        self.is_idle() && self.in_flight.is_empty() && self.backing_off.is_empty() && self.n_waiting == 0
    }

    #[cfg(test)]
    pub(in super::super) fn capacity(&self) -> usize {
        self.objects.capacity()
    }

    pub(in super::super) fn n_deferred(&self) -> usize {
        self.deferred.len()
    }

    /// Returns how many objects will be delivered without any further call.
    pub(in super::super) fn n_ready_or_backing_off(&self) -> usize {
        self.ready.len() + self.backing_off.len()
    }

    /// Returns how many initial adds are not finished.
    pub(in super::super) fn n_initial(&self) -> usize {
        self.n_initial
    }

    /// Returns how long the oldest notification that is ready, backing off or deferred has waited.
    pub(in super::super) fn oldest_age(&self, now: Instant) -> Duration {
        let ready = self.ready.oldest();
        let waiting = ready.chain(self.backing_off.values()).chain(&self.deferred);
        let queued =
            waiting.filter_map(|key| self.objects.get(key)?.waiting.front()).map(|first| first.arrived);
        let arrived = queued.chain(self.ready.first_listed_at()).min();
        arrived.map_or(Duration::ZERO, |arrived| now.saturating_duration_since(arrived))
    }
}

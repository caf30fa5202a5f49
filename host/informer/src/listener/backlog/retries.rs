//! Objects that are parked or back off, which become ready again before their time.

use std::collections::BTreeSet;

use super::{Backlog, ObjectQueue, ObjectState};
use crate::names::ObjectKey;

// === impl Backlog ===

impl Backlog {
    /// Makes all parked objects ready and resets their counts of attempts; returns how many.
    pub(in super::super) fn retry_parked(&mut self) -> usize {
        let parked = self.parked();
        parked.iter().for_each(|key| {
            self.retry_parked_object(key);
        });
        parked.len()
    }

    /// Makes one parked object ready and resets its count of attempts; returns whether it was parked.
    pub(in super::super) fn retry_parked_object(&mut self, key: &ObjectKey) -> bool {
        let is_parked = |queue: &ObjectQueue| matches!(queue.state, ObjectState::Parked);
        if !self.objects.get(key).is_some_and(is_parked) {
            return false;
        }
        self.n_parked -= 1;
        self.reset_attempts(key);
        self.become_ready(key.clone());
        true
    }

    /// Makes all objects in back-off ready and resets their counts of attempts; returns how many. Resets the
    /// counts of those in flight as well.
    pub(in super::super) fn retry_backing_off(&mut self) -> usize {
        self.in_flight.values_mut().for_each(|in_flight| in_flight.pending.attempts = 0);
        let backing_off = std::mem::take(&mut self.backing_off);
        let n_objects = backing_off.len();
        for key in backing_off.into_values() {
            self.reset_attempts(&key);
            self.become_ready(key);
        }
        n_objects
    }

    /// Returns the keys of the parked objects, sorted.
    pub(in super::super) fn parked(&self) -> Vec<ObjectKey> {
        let parked = self.objects.iter().filter(|(_, queue)| matches!(queue.state, ObjectState::Parked));
        parked.map(|(key, _)| key.clone()).collect::<BTreeSet<_>>().into_iter().collect()
    }
}

//! Queues keys again when something changes that they read through a lister that wakes.
//!
//! Each such lister has a subscription of its own, which the plugin did not declare: its listener follows the
//! account's access, keeps a backlog and is inherited like any other, but its notifications reach no guest,
//! and it has no `on-synced`. [`ReadSets`](super::read_sets::ReadSets) maps them to keys.
//!
//! Initial adds wake no key: none has read before the first one, and a listener that sees more or other
//! namespaces than before wakes all readers. So does one that has merged notifications, since these hide
//! states that a run may have read.

use std::sync::Arc;

use oarlock_informer::{Notification, listener::Delivery};

use super::Dispatcher;
use super::active_generation::{ActiveGeneration, ActiveSubscription, DeliveryState};
use super::due_call::Outcome;
use super::slice::Slice;
use crate::plan::SubscriptionPlan;
use crate::traces::EventTrace;

/// How many keys are queued before other tasks of the worker get their turn.
const SLICE: usize = 256;

// === impl Dispatcher ===

impl Dispatcher {
    /// Finds the keys that a notification wakes; [`Dispatcher::queue_woken`] queues them.
    pub(super) fn wake(
        &self,
        active: &mut ActiveGeneration,
        subscription: usize,
        delivery: &Delivery,
    ) -> Outcome {
        let subscription = &mut active.subscriptions[subscription];
        let has_merged = subscription.has_merged();
        let Some(lister) = &subscription.plan.wakes else { return Outcome::Done };
        let is_initial =
            matches!(delivery.notification, Notification::Added { is_in_initial_list: true, .. });
        let sets = self.queue.read_sets();
        match () {
            () if has_merged => sets.changed_somehow(&lister.name),
            () if is_initial => return Outcome::Done,
            () => sets.changed(&lister.name, &delivery.notification),
        }
        let trace = self.trace_event(&subscription.plan, delivery);
        active.woken_by = trace.as_ref().map(EventTrace::cause);
        active.note_woken();
        Outcome::Done
    }

    /// Wakes the readers of a lister that may show other namespaces than before.
    pub(super) fn access_changed(&self, active: &mut ActiveGeneration, subscription: usize) {
        let ActiveSubscription { plan, state, .. } = &active.subscriptions[subscription];
        if let Some(lister) = &plan.wakes
            && *state == DeliveryState::Delivering
        {
            self.queue.read_sets().changed_somehow(&lister.name);
            active.note_woken();
        }
    }

    /// Serves the readers of another generation's listers.
    pub(super) fn serve_readers(&self, active: &ActiveGeneration, inherited: &[Arc<SubscriptionPlan>]) {
        let listers = active.subscriptions.iter().filter_map(|it| it.plan.wakes.clone()).collect();
        let is_inherited = |plan: &SubscriptionPlan, name: &str| {
            plan.wakes.as_ref().is_some_and(|lister| *lister.name == *name)
        };
        let keeps = |name: &str| inherited.iter().any(|plan| is_inherited(plan, name));
        self.queue.read_sets().serve(active.number, listers, |lister| keeps(&lister.name));
    }

    /// Queues keys that were woken. Ends the slice if more are left.
    pub(super) fn queue_woken(&self, active: &mut ActiveGeneration, slice: &mut Slice) {
        let sets = self.queue.read_sets();
        // A queue that was full may be so still, and for one key it is as for many.
        let most = if std::mem::take(&mut active.was_full) { 1 } else { SLICE };
        let (keys, has_more) = sets.take_due(most);
        active.forget_key_waker();
        let mut keys = keys.into_iter();
        while let Some(key) = keys.next() {
            if self.queue.wake(&key, active.woken_by.clone()).is_err() {
                sets.put_back(std::iter::once(key).chain(keys));
                return active.queue_is_full();
            }
        }
        if has_more {
            active.note_woken();
            if most > 1 {
                slice.used_up();
            }
        } else {
            active.woken_by = None;
        }
    }
}

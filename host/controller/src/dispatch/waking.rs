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
use super::slice::{Slice, SliceOwner};
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

    /// Queues the keys that were woken. If the queue is full, the next turn tries again.
    pub(super) async fn queue_woken(
        &self,
        active: &mut ActiveGeneration,
        slice: &mut Slice,
        owner: SliceOwner,
    ) {
        let sets = self.queue.read_sets();
        // A queue that is full for the first key is full for the others.
        let cause = active.woken_by.take();
        let Some(first) = sets.first_due() else { return };
        if self.queue.wake(&first, cause.clone()).is_err() {
            return active.note_woken();
        }
        let mut keys = sets.take_due().into_iter();
        let mut n_queued = 0_usize;
        while let Some(key) = keys.next() {
            // The first key has the cause already.
            let cause = cause.clone().filter(|_| key != first);
            if self.queue.wake(&key, cause).is_err() {
                sets.put_back(std::iter::once(key).chain(keys));
                return active.note_woken();
            }
            n_queued += 1;
            if n_queued.is_multiple_of(SLICE) {
                slice.end_early(owner).await;
            }
        }
    }
}

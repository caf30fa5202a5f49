//! The first stage of the pipeline: may a due call be made now?
//!
//! 1. **Generation.** A due call always belongs to the active generation. If an object of it is still in a
//!    call, of this generation or of one before, the due call waits for the end of that one
//!    ([`calls`](super::calls)).
//! 2. **Access.** While the gate's decision about a subscription is unknown, none of its calls is made
//!    ([`DeliveryState::Closed`]). The dispatcher applies a changed decision before it takes the next due
//!    call, and a forbidden subscription sees no namespace, so that none of its notifications is due.
//! 3. **Own writes.** A subscription may skip notifications of what the plugin wrote itself
//!    ([`OwnWrites`](crate::kube_access::OwnWrites)).
//! 4. **Listers that wake.** Their notifications wake keys, without a call ([`waking`](super::waking)).
//! 5. **Enqueue rule.** A notification of a subscription with such a rule becomes a key of the work queue,
//!    without a call.
//! 6. **Crash back-off.** A call that cost the instance is deferred, and made alone and last, or parked.

use std::time::Duration;

use oarlock_informer::{Notification, listener::Delivery};

use super::Dispatcher;
use super::active_generation::{ActiveGeneration, ActiveSubscription, DeliveryState};
use super::crash_backoff::Decision;
use super::due_call::{CallKey, DueCall, Outcome};
use crate::kube_access::OwnWriteDecision;
use crate::traces::EventTrace;

/// When a notification whose keys do not fit into the work queue is tried again.
const FULL_AGAIN: Duration = Duration::from_secs(30);

// === impl CallKey ===

impl CallKey {
    /// Returns whether the gate's decision lets the plugin be called for this key.
    pub(super) fn may_be_called(&self, subscriptions: &[ActiveSubscription]) -> bool {
        let is_closed = |index: usize| subscriptions[index].state == DeliveryState::Closed;
        !self.subscription().is_some_and(is_closed)
    }
}

// === impl Dispatcher ===

impl Dispatcher {
    /// Checks a due call. Returns its outcome if it is not made now, `None` if it is.
    pub(super) fn check(&self, active: &mut ActiveGeneration, due: &DueCall) -> Option<Outcome> {
        match due {
            DueCall::Notification { subscription, delivery } => {
                let ActiveSubscription { plan, listener, .. } = &active.subscriptions[*subscription];
                if plan.ignores_own_writes {
                    match self.own_writes.decide(&plan.resource, delivery, listener) {
                        OwnWriteDecision::Deliver => {}
                        OwnWriteDecision::Skip => return Some(Outcome::Done),
                        OwnWriteDecision::Hold => return Some(Outcome::Defer),
                    }
                }
                if plan.wakes.is_some() {
                    return Some(self.wake(active, *subscription, delivery));
                }
                if !plan.enqueue.is_nothing() {
                    active.forget_key_waker();
                    return Some(self.enqueue(active, *subscription, delivery));
                }
            }
            DueCall::Synced { .. } if !active.exported.handler => return Some(Outcome::Done),
            DueCall::Synced { .. } | DueCall::Key(_) => {}
        }
        if active.crash_backoff.is_empty() {
            return None;
        }
        let version = || due.version(&self.queue);
        match active.crash_backoff.check(&due.key(), version, &active.retry) {
            Decision::Call => None,
            Decision::Defer => Some(Outcome::Defer),
            Decision::Park => Some(Outcome::Park),
        }
    }

    /// Adds the keys that a notification names to the work queue. A full queue is tried again later.
    fn enqueue(&self, active: &ActiveGeneration, subscription: usize, delivery: &Delivery) -> Outcome {
        let plan = &active.subscriptions[subscription].plan;
        let (rule, trace) = (&plan.enqueue, self.trace_event(plan, delivery));
        let notification = &delivery.notification;
        // When an object changes which key it names, both the old and the new key are reconciled.
        let states = [notification.old(), notification.new()];
        let version = notification.object().resource_version();
        // A resync shows what exists already, as an initial add does.
        let is_initial = match notification {
            Notification::Added { is_in_initial_list, .. } => *is_in_initial_list,
            Notification::Updated { old, new } => old.is_at_version_of(new) && old.has_uid_of(new),
            Notification::Deleted { .. } => false,
        };
        let mut is_full = false;
        for key in states.into_iter().flatten().filter_map(|state| rule.key(state)) {
            let cause = trace.as_ref().map(EventTrace::cause);
            is_full |= self.queue.add_for(key, &version, is_initial, cause).is_err();
        }
        if is_full { Outcome::RetryAfter(FULL_AGAIN) } else { Outcome::Done }
    }
}

//! What a dispatcher does with a step of the active generation.

use tokio::time::Instant;

use super::Dispatcher;
use super::active_generation::{ActiveGeneration, Step};
use super::call::PreparedCall;
use super::calls::{Calls, Work};
use super::due_call::{DueCall, Outcome};

/// Whether a call was in crash back-off.
struct IsDeferred(bool);

// === impl Dispatcher ===

impl Dispatcher {
    /// Takes a step. `recent` is the time if it was read just now.
    pub(super) fn take_step(
        &self,
        active: &mut ActiveGeneration,
        calls: &mut Calls,
        step: Step,
        recent: Option<Instant>,
    ) {
        match step {
            Step::AccessChanged(index) => {
                active.apply_access(index, &self.status);
                self.access_changed(active, index);
            }
            Step::RetryParked => {
                active.retry_parked(&self.queue);
            }
            Step::BecameIdle => {
                active.free_spare();
                calls.free_spare();
                self.queue.free_spare();
            }
            Step::Restart => {
                if let Some(taken) = active.lanes.take_empty() {
                    calls.begin(active.job(taken, None), !active.lanes.are_several());
                }
            }
            Step::Call(due) => match self.check(active, &due) {
                None => self.begin(active, calls, due, IsDeferred(false), recent),
                Some(outcome) => self.finish(active, &due, outcome, None),
            },
            Step::CallDeferred(key) => {
                let subscription = key.subscription();
                if let Some(due) = active.take_deferred(key, &self.queue) {
                    self.begin(active, calls, due, IsDeferred(true), recent);
                } else if let Some(subscription) = subscription {
                    // A listener that loads a snapshot gives nothing, and the object has lost its ticket. The
                    // check defers again what must wait.
                    active.subscriptions[subscription].listener.release_deferred();
                }
            }
        }
    }

    /// Begins a call on a free lane.
    fn begin(
        &self,
        active: &mut ActiveGeneration,
        calls: &mut Calls,
        due: DueCall,
        IsDeferred(is_deferred): IsDeferred,
        recent: Option<Instant>,
    ) {
        if matches!(due, DueCall::Notification { .. }) && self.shared.fault.swallows() {
            return self.finish(active, &due, Outcome::Done, None);
        }
        let id = due.id();
        if !calls.is_empty()
            && let Some(id) = id
            && calls.is_busy(id)
        {
            return calls.hold(id, due);
        }
        let Some(taken) = active.lanes.take(&active.restarts) else {
            return active.give_back(&due, &self.queue);
        };
        if is_deferred {
            active.deferred_lane = Some(taken.lane);
        }
        let began = recent.unwrap_or_else(Instant::now);
        active.note_time(began);
        if active.exported.reconciler {
            self.queue.call_begins(due.is_replay());
        }
        let trace = self.trace_call(active, &due);
        let call = self.prepare_call(active, due, began);
        if let PreparedCall::Synced { subscription, .. } = call {
            active.subscriptions[subscription].begin_synced();
        }
        let job = active.job(taken, Some(Work { id, call, began, trace }));
        calls.begin(job, !active.lanes.are_several());
    }
}

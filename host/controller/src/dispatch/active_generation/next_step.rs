//! Finds the next step of the active generation: a due call, a changed access, a restart, or the slow timer.

use std::future::poll_fn;
use std::task::{Context, Poll};

use tokio::time::Instant;

use super::active_subscription::poll_endless;
use super::{ActiveGeneration, ActiveSubscription, InstanceState, Step};
use crate::dispatch::due_call::{CallKey, DueCall};

// === impl ActiveGeneration ===

impl ActiveGeneration {
    /// Waits for the next step. Cancelling the wait loses nothing.
    pub(in crate::dispatch) async fn next_step(&mut self, is_suspended: bool) -> Step {
        loop {
            // A busy plugin never waits; other tasks of this worker get their turn all the same.
            tokio::task::coop::consume_budget().await;
            let now = Instant::now();
            let parked_due = *self.parked_due.get_or_insert(now + self.retry.parked_again);
            if parked_due <= now {
                self.parked_due = None;
                return Step::RetryParked;
            }
            if let Some(index) = self.subscriptions.iter().position(ActiveSubscription::access_has_changed) {
                return Step::AccessChanged(index);
            }
            let restart_at = match &self.instance {
                InstanceState::Alive(_) => None,
                InstanceState::Lost { restart_at } => Some(*restart_at),
            };
            let can_call = restart_at.is_none() && !is_suspended;
            if can_call && let Some(step) = self.ready_step(now).await {
                return step;
            }
            let wake_at = match restart_at {
                Some(restart_at) => restart_at.min(parked_due),
                None if is_suspended => parked_due,
                None => self.next_due().map_or(parked_due, |due| due.min(parked_due)),
            };
            tokio::select! {
                biased;
                due = poll_fn(|cx| self.poll_idle(cx, can_call, wake_at)) => {
                    if let Some(due) = due {
                        return Step::Call(due);
                    }
                }
                () = tokio::time::sleep_until(wake_at) => {
                    if restart_at.is_some_and(|restart_at| restart_at <= wake_at) {
                        return Step::Restart;
                    }
                }
            }
        }
    }

    /// Returns a call that can be made now, if there is one. Calls in crash back-off come last.
    async fn ready_step(&mut self, now: Instant) -> Option<Step> {
        let synced = self.subscriptions.iter().position(|it| it.synced_due().is_some_and(|due| due <= now));
        if let Some(subscription) = synced {
            return Some(Step::Call(DueCall::Synced { subscription }));
        }
        // A plugin that answers no call has no healthy work that a call in back-off could delay.
        let is_answering = self.restarts.in_a_row() == 0;
        if is_answering && let Some(key) = self.take_from_backoff(now, true) {
            return Some(Step::CallDeferred(key));
        }
        if let Poll::Ready(due) = poll_fn(|cx| Poll::Ready(self.poll_due_call(cx))).await {
            return Some(Step::Call(due));
        }
        self.take_from_backoff(now, false).map(Step::CallDeferred)
    }

    fn take_from_backoff(&mut self, now: Instant, others_are_ready: bool) -> Option<CallKey> {
        let Self { crash_backoff, subscriptions, .. } = self;
        crash_backoff.take(now, others_are_ready, |key| key.may_be_called(subscriptions))
    }

    /// Returns when the next `on-synced` call or call in crash back-off is due.
    fn next_due(&self) -> Option<Instant> {
        let synced = self.subscriptions.iter().filter_map(ActiveSubscription::synced_due).min();
        let deferred = self.crash_backoff.next_due(|key| key.may_be_called(&self.subscriptions));
        synced.into_iter().chain(deferred).min()
    }

    /// Polls for a due call, if calls are possible, and for changes of access and sync, which return `None`.
    fn poll_idle(&mut self, cx: &mut Context<'_>, can_call: bool, wake_at: Instant) -> Poll<Option<DueCall>> {
        for subscription in &mut self.subscriptions {
            if subscription.poll_change(cx).is_ready() {
                return Poll::Ready(None);
            }
        }
        if !can_call {
            return Poll::Pending;
        }
        let due = self.poll_due_call(cx);
        // A listener may have synced after `wake_at` was computed: in another task, or in this poll, which
        // loads a slice of its snapshot.
        let is_due = |it: &ActiveSubscription| it.synced_due().is_some_and(|due| due < wake_at);
        if due.is_pending() && self.subscriptions.iter().any(is_due) {
            return Poll::Ready(None);
        }
        due.map(Some)
    }

    /// Polls the subscriptions and the work queue, beginning with another one each time, so that none
    /// starves.
    fn poll_due_call(&mut self, cx: &mut Context<'_>) -> Poll<DueCall> {
        let n_sources = self.subscriptions.len() + usize::from(self.exported.reconciler);
        for offset in 0..n_sources {
            let source = self.turn.wrapping_add(offset) % n_sources;
            let due = match self.subscriptions.get_mut(source) {
                Some(subscription) => subscription
                    .poll_notification(cx)
                    .map(|delivery| DueCall::Notification { subscription: source, delivery }),
                None => poll_endless(&mut self.keys, cx).map(DueCall::Key),
            };
            if due.is_ready() {
                self.turn = self.turn.wrapping_add(1);
                return due;
            }
        }
        Poll::Pending
    }
}

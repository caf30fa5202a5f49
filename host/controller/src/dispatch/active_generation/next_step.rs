//! Finds the next step of the active generation: a due call, a changed access, a restart, or the slow timer.

use std::task::{Context, Poll, ready};

use tokio::time::Instant;

use super::{ActiveGeneration, ActiveSubscription, Step};
use crate::dispatch::due_call::{CallKey, DueCall};

// === impl ActiveGeneration ===

impl ActiveGeneration {
    /// Polls for the next step. A plugin that may not be called is due no call and no fresh instance, since
    /// a start runs the guest's code. A plugin with state is due no call while the generation before has one
    /// in progress. A poll that returns nothing loses nothing.
    ///
    /// On standby no instance is lost, since none is called. The first one, which was made with the
    /// generation, stays if the plugin has state; that of a stateless plugin is dropped when it is idle.
    pub(in crate::dispatch) fn poll_step(&mut self, cx: &mut Context<'_>, may_call: bool) -> Poll<Step> {
        loop {
            if let Some(step) = self.timer_step(may_call) {
                return Poll::Ready(step);
            }
            if let Some(index) = self.subscriptions.iter().position(ActiveSubscription::access_has_changed) {
                return Poll::Ready(Step::AccessChanged(index));
            }
            let can_call = may_call && !self.waits_for_drain && self.lanes.can_call(&self.restarts);
            if can_call && let Poll::Ready(step) = self.poll_ready(cx) {
                return Poll::Ready(step);
            }
            // A changed access is applied before the next call. While all lanes are busy, the end of a call
            // wakes the dispatcher.
            let watches_changes = can_call || self.lanes.n_busy() == 0;
            if watches_changes && self.subscriptions.iter_mut().any(|it| it.poll_change(cx).is_ready()) {
                continue;
            }
            // A listener may have synced since: in another task, or as it was polled, which loads a slice of
            // its snapshot. So this is computed last.
            let Some(at) = self.next_alarm(can_call, may_call) else { return Poll::Pending };
            self.latest = Instant::now();
            if self.latest < at {
                ready!(self.alarm.poll(cx, at));
                self.latest = Instant::now();
            }
        }
    }

    /// Notes a time of the recent past. The timers are compared with the latest one at each turn.
    pub(in crate::dispatch) fn note_time(&mut self, now: Instant) {
        self.latest = now;
    }

    /// Returns what a timer asks for.
    fn timer_step(&mut self, may_call: bool) -> Option<Step> {
        let is_over = |due: Option<Instant>| due.is_some_and(|due| due <= self.latest);
        if is_over(self.parked_due) {
            return Some(Step::RetryParked);
        }
        if may_call && is_over(self.lanes.restart_at()) {
            return Some(Step::Restart);
        }
        if is_over(self.lanes.idle_due()) {
            self.lanes.drop_idle(self.latest);
            if self.lanes.are_empty() {
                return Some(Step::BecameIdle);
            }
        }
        None
    }

    fn next_alarm(&self, can_call: bool, may_call: bool) -> Option<Instant> {
        let due = if can_call { self.next_due() } else { None };
        let restart = if may_call { self.lanes.restart_at() } else { None };
        let timers = [due, self.parked_due, restart, self.lanes.idle_due()];
        timers.into_iter().flatten().min()
    }

    /// Polls for a call that can be made now. Calls in crash back-off come last.
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Step> {
        if let Some(subscription) = self.due_synced() {
            return Poll::Ready(Step::Call(DueCall::Synced { subscription }));
        }
        // A plugin that answers no call has no healthy work that a call in back-off could delay.
        let is_answering = self.restarts.in_a_row() == 0;
        if is_answering && let Some(key) = self.take_from_backoff(true) {
            return Poll::Ready(Step::CallDeferred(key));
        }
        if let Poll::Ready(due) = self.poll_due_call(cx) {
            return Poll::Ready(Step::Call(due));
        }
        match self.take_from_backoff(false) {
            Some(key) => Poll::Ready(Step::CallDeferred(key)),
            None => Poll::Pending,
        }
    }

    /// Returns a subscription whose `on-synced` call is due. One such call is made at a time, so that each
    /// states the right number of those that remain.
    fn due_synced(&self) -> Option<usize> {
        let due = |it: &ActiveSubscription| it.synced_due().is_some_and(|due| due <= Instant::now());
        let subscription = self.subscriptions.iter().position(due)?;
        let is_another_in_progress = self.subscriptions.iter().any(ActiveSubscription::is_synced_in_progress);
        (!is_another_in_progress).then_some(subscription)
    }

    fn take_from_backoff(&mut self, others_are_ready: bool) -> Option<CallKey> {
        let Self { crash_backoff, subscriptions, deferred_lane, .. } = self;
        if crash_backoff.is_empty() || deferred_lane.is_some() {
            return None;
        }
        crash_backoff.take(Instant::now(), others_are_ready, |key| key.may_be_called(subscriptions))
    }

    /// Returns when the next `on-synced` call or call in crash back-off is due.
    fn next_due(&self) -> Option<Instant> {
        let synced = match self.subscriptions.iter().any(ActiveSubscription::is_synced_in_progress) {
            true => None,
            false => self.subscriptions.iter().filter_map(ActiveSubscription::synced_due).min(),
        };
        let deferred = match self.deferred_lane {
            Some(_) => None,
            None => self.crash_backoff.next_due(|key| key.may_be_called(&self.subscriptions)),
        };
        synced.into_iter().chain(deferred).min()
    }

    /// Polls the subscriptions and the work queue, beginning with another one each time, so that none
    /// starves.
    fn poll_due_call(&mut self, cx: &mut Context<'_>) -> Poll<DueCall> {
        let n_sources = self.subscriptions.len() + usize::from(self.keys.is_some());
        for offset in 0..n_sources {
            let source = self.turn.wrapping_add(offset) % n_sources;
            let due = match self.subscriptions.get_mut(source) {
                Some(subscription) => subscription
                    .poll_notification(cx)
                    .map(|delivery| DueCall::Notification { subscription: source, delivery }),
                None => match &mut self.keys {
                    Some(keys) => keys.poll_next(cx).map(DueCall::Key),
                    None => Poll::Pending,
                },
            };
            if due.is_ready() {
                self.turn = self.turn.wrapping_add(1);
                return due;
            }
        }
        Poll::Pending
    }
}

//! What happens next to the generation that serves.

use futures::FutureExt;
use futures::future::{BoxFuture, select_all};
use tokio::time::Instant;

use super::{CallKey, Current, Door, Life, Open, Step};
use crate::dispatch::queue::PluginQueue;

// === impl Current ===

impl Current {
    /// Waits for what happens next. Cancelling the wait loses nothing.
    pub(in crate::dispatch) async fn next_step(&mut self, queue: &PluginQueue) -> Step {
        loop {
            // Busy plugins never wait for anything; others must get their turn all the same.
            tokio::task::coop::consume_budget().await;
            let now = Instant::now();
            let parked_due = *self.parked_due.get_or_insert(now + self.retry.parked_again);
            if parked_due <= now {
                self.parked_due = None;
                return Step::RetryParked;
            }
            if let Some(index) =
                self.subscriptions.iter().position(|it| it.access.has_changed().unwrap_or(false))
            {
                return Step::Access(index);
            }
            let restart_at = match &self.life {
                Life::Alive(_) => None,
                Life::Lost { until } => Some(*until),
            };
            if restart_at.is_none() {
                if let Some(index) = self.subscriptions.iter().position(|it| it.is_to_be_told(now)) {
                    return Step::Synced(index);
                }
                // Patience is with those who are served: a plugin that answers nothing has no healthy work.
                let is_serving = self.restarts.in_a_row() == 0;
                if let Some(key) = is_serving.then(|| self.take_suspect(now, true)).flatten() {
                    return Step::Suspect(key);
                }
                if let Some(step) = self.next_call(queue).now_or_never() {
                    self.turn = self.turn.wrapping_add(1);
                    return step;
                }
                if let Some(key) = self.take_suspect(now, false) {
                    return Step::Suspect(key);
                }
            }
            let due = self.subscriptions.iter().filter_map(Open::due).fold(parked_due, Instant::min);
            let suspect_due = self.suspects.next_due(|key| may_be_tried(&self.subscriptions, key));
            let due = suspect_due.map_or(due, |suspect_due| suspect_due.min(due));
            let wake = restart_at.map_or(due, |at| if at <= now { at } else { at.min(parked_due) });
            let changes = self.changes();
            tokio::select! {
                biased;
                () = changes => {}
                () = tokio::time::sleep_until(wake) => {
                    if restart_at.is_some_and(|at| at <= wake) {
                        return Step::Restart;
                    }
                }
                step = self.next_call(queue), if restart_at.is_none() => {
                    self.turn = self.turn.wrapping_add(1);
                    return step;
                }
            }
        }
    }

    fn take_suspect(&mut self, now: Instant, healthy_is_ready: bool) -> Option<CallKey> {
        let Self { suspects, subscriptions, .. } = self;
        suspects.take(now, healthy_is_ready, |key| may_be_tried(subscriptions, key))
    }

    /// Waits until a subscription's access changes or its initial adds are done.
    fn changes(&self) -> impl Future<Output = ()> + Send + use<> {
        let mut waits: Vec<BoxFuture<'static, ()>> = Vec::with_capacity(2 * self.subscriptions.len());
        for open in &self.subscriptions {
            // A clone has seen what the original has.
            let mut access = open.access.clone();
            waits.push(
                async move {
                    if access.changed().await.is_err() {
                        std::future::pending::<()>().await;
                    }
                }
                .boxed(),
            );
            if open.door == Door::Open && !open.told_synced && !open.listener.has_synced() {
                let handle = open.listener.handle();
                waits.push(
                    async move {
                        if !handle.wait_for_sync().await {
                            std::future::pending::<()>().await;
                        }
                    }
                    .boxed(),
                );
            }
        }
        async move {
            if waits.is_empty() {
                std::future::pending::<()>().await;
            }
            select_all(waits).await;
        }
    }

    /// Waits for something to call the plugin with, fairly among those that have something.
    async fn next_call(&mut self, queue: &PluginQueue) -> Step {
        let reconciles = self.exported.reconciler;
        let mut waits: Vec<BoxFuture<'_, Step>> = Vec::with_capacity(self.subscriptions.len() + 1);
        for (index, open) in self.subscriptions.iter_mut().enumerate() {
            if open.door == Door::Shut {
                continue;
            }
            let listener = &mut open.listener;
            waits.push(
                async move {
                    match listener.next().await {
                        Some(delivery) => Step::Deliver(index, delivery),
                        // The informer has stopped: so will the plugin.
                        None => std::future::pending().await,
                    }
                }
                .boxed(),
            );
        }
        if reconciles {
            waits.push(queue.next().map(Step::Reconcile).boxed());
        }
        if waits.is_empty() {
            return std::future::pending().await;
        }
        let first = self.turn % waits.len();
        waits.rotate_left(first);
        select_all(waits).await.0
    }
}

/// Whether notifications of its subscription may pass.
fn may_be_tried(subscriptions: &[Open], key: &CallKey) -> bool {
    key.subscription().is_none_or(|index| subscriptions[index].door != Door::Shut)
}

//! Calls one plugin, one call at a time.
//!
//! Every call is a [`DueCall`] (a notification, the end of initial adds, or a key of the work queue) and
//! passes one pipeline:
//!
//! ```text
//!   Listener ─┐
//!   Listener ─┼─► next_step ─► check ─► call ─► settle ─┬─► done, or requeued
//!   queue ────┘       ▲                                 ├─► retried after a back-off, or parked
//!                     │                                 └─► instance lost: crash back-off, or parked
//!                     └── access changes, slow timer, restart, switch to another generation
//! ```
//!
//! [`check`] decides by access, enqueue rule and crash back-off, [`call`] calls the instance, and [`settle`]
//! applies the answer or the [`loss`] of the instance.
//!
//! A plugin has one [`Dispatcher`] for its whole life, which calls one [`Generation`] after the other. A
//! failure delays one object or key ([`retry`]). A trap costs the instance, and the call that lost it is made
//! again alone and last ([`crash_backoff`], [`loss`]). The fresh instance of a stateful plugin receives
//! everything again, a stateless plugin continues where it was.
//!
//! The calls of one object are made in order, and so are those of one key. Between objects nothing is
//! promised.

mod active_generation;
mod call;
mod check;
mod commands;
mod crash_backoff;
mod declared_fields;
mod due_call;
mod enqueue;
mod event_view;
mod fault;
mod generation;
mod health;
mod loss;
mod parked;
mod queue;
mod retry;
mod settle;

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use self::active_generation::{ActiveGeneration, Step};
pub(crate) use self::call::{MakeInstance, Maker};
use self::commands::Command;
pub(crate) use self::commands::Commands;
pub(crate) use self::commands::{Redeliver, RedeliverError};
use self::due_call::{DueCall, Outcome};
pub(crate) use self::enqueue::EnqueueRule;
pub(crate) use self::fault::FaultHook;
pub(crate) use self::generation::{ActiveView, Generation, GenerationSubscription, GenerationView, Switch};
#[allow(unused_imports, reason = "the probation of a generation reads it")]
pub(crate) use self::health::{GenerationHealth, HealthView};
pub(crate) use self::loss::LOSS_REASONS;
pub(crate) use self::parked::Parked;
pub(crate) use self::queue::PluginQueue;
pub use self::retry::{RestartPolicy, RetryPolicy};
use crate::metrics::{Metrics, PluginMetrics};
use crate::report::{HostEvent, Mode};
use crate::status::{Phase, PluginStatusHandle};

/// The parts that all dispatchers of the host share.
#[derive(Clone)]
pub(crate) struct DispatcherShared {
    pub(crate) metrics: Metrics,
    pub(crate) retry: RetryPolicy,
    pub(crate) restart: RestartPolicy,
    pub(crate) fault: FaultHook,
}

/// Calls one plugin.
pub(crate) struct Dispatcher {
    plugin: Arc<str>,
    shared: DispatcherShared,
    metrics: Arc<PluginMetrics>,
    status: PluginStatusHandle,
    queue: PluginQueue,
    switches: mpsc::Receiver<Switch>,
    commands: mpsc::Receiver<Command>,
    active_view: Arc<ActiveView>,
    /// A user has stopped the calls.
    is_suspended: bool,
}

/// What the rest of the host does with a dispatcher.
pub(crate) struct DispatcherHandle {
    /// Takes the next generation.
    pub(crate) switches: mpsc::Sender<Switch>,
    /// The active generation.
    pub(crate) active: Arc<ActiveView>,
    pub(crate) commands: Commands,
}

// === impl Dispatcher ===

impl Dispatcher {
    /// Creates a dispatcher that waits for the plugin's first generation.
    pub(crate) fn new(
        plugin: Arc<str>,
        shared: DispatcherShared,
        status: PluginStatusHandle,
        queue: PluginQueue,
    ) -> (Self, DispatcherHandle) {
        let (sender, switches) = mpsc::channel(1);
        let (commands_handle, commands) = Commands::new();
        let active_view = Arc::new(ActiveView::default());
        let metrics = shared.metrics.plugin(&plugin);
        let handle =
            DispatcherHandle { switches: sender, active: active_view.clone(), commands: commands_handle };
        let dispatcher = Self {
            plugin,
            shared,
            metrics,
            status,
            queue,
            switches,
            commands,
            active_view,
            is_suspended: false,
        };
        (dispatcher, handle)
    }

    /// Calls the plugin until the token is cancelled.
    pub(crate) async fn run(mut self, token: CancellationToken) {
        let mut active: Option<ActiveGeneration> = None;
        loop {
            let step = tokio::select! {
                biased;
                () = token.cancelled() => return,
                Some(Switch { generation, done }) = self.switches.recv() => {
                    let has_switched;
                    (active, has_switched) = self.switch(active, *generation);
                    if has_switched {
                        // The task that prepared it may have ended.
                        let _ = done.send(());
                    }
                    continue;
                }
                Some(command) = self.commands.recv() => {
                    self.obey(active.as_mut(), command);
                    continue;
                }
                step = next_step(active.as_mut(), self.is_suspended) => step,
            };
            if let Some(active) = &mut active {
                self.take_step(active, step, &token).await;
            }
        }
    }

    async fn take_step(&self, active: &mut ActiveGeneration, step: Step, token: &CancellationToken) {
        match step {
            Step::AccessChanged(index) => active.apply_access(index, &self.status),
            Step::RetryParked => {
                active.retry_parked(&self.queue);
            }
            Step::Restart => self.restart(active, token).await,
            Step::Call(due) => match self.check(active, &due) {
                None => self.call_and_settle(active, due, token).await,
                Some(outcome) => self.finish(active, &due, outcome, None),
            },
            Step::CallDeferred(key) => {
                if let Some(due) = active.take_deferred(key, &self.queue) {
                    self.call_and_settle(active, due, token).await;
                }
            }
        }
    }

    async fn call_and_settle(&self, active: &mut ActiveGeneration, due: DueCall, token: &CancellationToken) {
        let Some(call) = self.prepare_call(active, &due).await else {
            return self.finish(active, &due, Outcome::Done, None);
        };
        let result = self.call(active, &call, token).await;
        self.settle(active, due, call.function(), result);
    }

    /// Makes a fresh instance. Unless the plugin is stateless, it receives everything again.
    async fn restart(&self, active: &mut ActiveGeneration, token: &CancellationToken) {
        let maker = active.maker();
        let made = tokio::select! {
            biased;
            () = token.cancelled() => return,
            made = maker.make() => made,
        };
        match made {
            Ok(instance) => {
                let mode = active.restart(instance);
                if mode == Mode::Replay {
                    self.status.update(|status| {
                        status.subscriptions.iter_mut().for_each(|it| it.synced = false);
                    });
                }
                self.show_phase(Some(active));
                self.metrics.restarted();
                active.reporter.report(HostEvent::InstanceRestarted { mode });
            }
            Err(error) => self.cannot_start(active, &error),
        }
    }

    /// Switches to another generation, and returns whether it did. No call is in progress.
    fn switch(
        &mut self,
        old: Option<ActiveGeneration>,
        generation: Generation,
    ) -> (Option<ActiveGeneration>, bool) {
        let took = generation.began.elapsed();
        let (took_ms, took_us) = (milliseconds(took), u64::try_from(took.as_micros()).unwrap_or(u64::MAX));
        let (version, digest) = (generation.version.clone(), generation.digest.clone());
        let view = generation.view();
        let (active, mode) = match ActiveGeneration::replace(old, generation, &self.queue) {
            Ok(replaced) => replaced,
            Err(old) => {
                // Only a bug of the host gets here. The old generation stays active.
                tracing::error!(plugin = %self.plugin, "a new generation inherits a listener that does not exist; the old one keeps serving");
                return (*old, false);
            }
        };
        self.active_view.set(view);
        // The new version may be able to handle what the old one could not.
        self.queue.release_deferred();
        self.queue.retry_parked();
        self.status.update(|status| {
            status.generation = active.number;
            status.version = Some(version.clone());
            status.digest = Some(digest.clone());
            status.waits_for.clear();
            status.last_error = None;
        });
        active.reporter.report(HostEvent::PluginLoaded { version, digest, mode, took_ms, took_us });
        active.publish(&self.status, &self.queue);
        self.show_phase(Some(&active));
        (Some(active), true)
    }

    fn show_phase(&self, active: Option<&ActiveGeneration>) {
        let phase = match active {
            _ if self.is_suspended => Phase::Suspended,
            None => Phase::Loading,
            Some(active) if active.has_instance() => Phase::Serving,
            Some(_) => Phase::Restarting,
        };
        self.status.update(|status| status.phase = phase);
    }
}

async fn next_step(active: Option<&mut ActiveGeneration>, is_suspended: bool) -> Step {
    match active {
        Some(active) => active.next_step(is_suspended).await,
        None => std::future::pending().await,
    }
}

fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;

//! Calls one plugin: its notifications and its keys, one call at a time, through every mishap.
//!
//! ```text
//!   Listener ─┐                         ┌ done
//!   Listener ─┼─► next ─► judge ─► call ┼ retry, park      the object alone waits
//!   queue ────┘     ▲                   └ instance lost    fresh one; what it was lost with is tried last
//!                   └── access changes, slow timer, switch to another generation
//! ```
//!
//! A plugin has one [`Dispatcher`] for its whole life, and [`Generation`]s come and go in it. What an error costs is one object's
//! delay ([`retry`]); what a trap costs is the instance, and the object that it happened with is tried again
//! alone and last ([`suspects`], [`loss`]). A stateful plugin's fresh instance gets everything anew, a stateless one goes on.

mod call;
mod current;
mod declared;
mod deliver;
mod enqueue;
mod fault;
mod generation;
mod loss;
mod queue;
mod reconcile;
mod retry;
mod suspects;

use std::sync::Arc;
use std::time::Duration;

use oarlock_plugin::CallError;
use oarlock_plugin::contract::Failure;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

pub(crate) use self::call::{Answer, Call, LOSS_REASONS, MakeInstance, Maker};
use self::current::{CallKey, Current, Step};
pub use self::enqueue::EnqueueRule;
pub use self::fault::FaultHook;
pub(crate) use self::generation::{Generation, Serving, Slot, Switch, View};
pub use self::queue::PluginQueue;
pub use self::retry::{RestartPolicy, RetryPolicy};
use crate::metrics::Metrics;
use crate::report::{HostEvent, Mode};
use crate::status::{self, PluginStatusHandle};

/// How long a call may go on after its plugin was told to end.
const GRACE: Duration = Duration::from_secs(5);

/// What every dispatcher of the host shares.
#[derive(Clone)]
pub(crate) struct Shared {
    pub(crate) metrics: Metrics,
    pub(crate) retry: RetryPolicy,
    pub(crate) restart: RestartPolicy,
    pub(crate) fault: FaultHook,
}

/// Calls one plugin.
pub(crate) struct Dispatcher {
    plugin: Arc<str>,
    shared: Shared,
    status: PluginStatusHandle,
    queue: PluginQueue,
    switches: mpsc::Receiver<Switch>,
    serving: Arc<Serving>,
}

/// How a call ended, for those who only need to know what follows.
enum Ended {
    Answered(Result<Answer, Failure>, Duration),
    Lost(CallError),
    /// The plugin is to end; nobody waits for the answer.
    GivenUp,
}

// === impl Dispatcher ===

impl Dispatcher {
    /// Makes one that waits for the plugin's first generation, and the end by which generations are handed to it.
    pub(crate) fn new(
        plugin: Arc<str>,
        shared: Shared,
        status: PluginStatusHandle,
        queue: PluginQueue,
    ) -> (Self, mpsc::Sender<Switch>, Arc<Serving>) {
        let (sender, switches) = mpsc::channel(1);
        let serving = Arc::new(Serving::default());
        (Self { plugin, shared, status, queue, switches, serving: serving.clone() }, sender, serving)
    }

    /// Calls the plugin until the token is cancelled.
    pub(crate) async fn run(mut self, token: CancellationToken) {
        let mut current: Option<Current> = None;
        loop {
            let step = tokio::select! {
                biased;
                () = token.cancelled() => return,
                Some(Switch { generation, done }) = self.switches.recv() => {
                    let has_switched;
                    (current, has_switched) = self.switch(current, *generation);
                    if has_switched {
                        // Whoever prepared it may have lost interest.
                        let _ = done.send(());
                    }
                    continue;
                }
                step = next_step(current.as_mut(), &self.queue) => step,
            };
            if let Some(current) = &mut current {
                self.take(current, step, &token).await;
            }
        }
    }

    async fn take(&self, current: &mut Current, step: Step, token: &CancellationToken) {
        match step {
            Step::Access(index) => current.apply_access(index, &self.status),
            Step::RetryParked => current.retry_parked(&self.queue),
            Step::Restart => self.restart(current, token).await,
            Step::Synced(index) => self.tell_synced(current, index, token).await,
            Step::Deliver(index, delivery) => self.deliver(current, index, delivery, token).await,
            Step::Reconcile(key) => self.reconcile(current, key, token).await,
            Step::Suspect(key) => self.try_suspect(current, key, token).await,
        }
    }

    /// Tries what cost an instance before, if it still waits.
    async fn try_suspect(&self, current: &mut Current, key: CallKey, token: &CancellationToken) {
        match key {
            CallKey::Object(index, key) => {
                if let Some(delivery) = current.subscriptions[index].listener.take_deferred(&key) {
                    self.notify(current, index, delivery, token).await;
                }
            }
            CallKey::Synced(index) => {
                if current.subscriptions[index].synced_deferred {
                    self.call_synced(current, index, token).await;
                }
            }
            CallKey::Work(key) => {
                if self.queue.take_deferred(&key) {
                    self.reconcile_now(current, key, token).await;
                }
            }
        }
    }

    /// Makes one call. The instance is taken along, and gone when the call does not come back with an answer.
    async fn call(&self, current: &mut Current, call: &Call, token: &CancellationToken) -> Ended {
        if current.exported.reconciler {
            self.queue.set_replaying(call.is_replay());
        }
        let Some(instance) = current.instance() else {
            return Ended::Lost(CallError::Dead);
        };
        let began = Instant::now();
        let answer = tokio::select! {
            biased;
            answer = instance.call(call) => answer,
            () = grace(token) => return Ended::GivenUp,
        };
        match answer {
            Ok(answer) => {
                current.restarts.answered();
                Ended::Answered(answer, began.elapsed())
            }
            Err(error) => Ended::Lost(error),
        }
    }

    /// Makes a fresh instance, and has it told everything anew unless the plugin is stateless.
    async fn restart(&self, current: &mut Current, token: &CancellationToken) {
        let maker = current.maker();
        let made = tokio::select! {
            biased;
            () = token.cancelled() => return,
            made = maker.make() => made,
        };
        match made {
            Ok(instance) => {
                let mode = current.restarted(instance);
                self.status.update(|status| {
                    status.phase = status::Phase::Serving;
                    if mode == Mode::Replay {
                        status.subscriptions.iter_mut().for_each(|it| it.synced = false);
                    }
                });
                self.shared.metrics.restarted(&self.plugin);
                current.reporter.report(HostEvent::InstanceRestarted { mode });
            }
            Err(error) => {
                self.cannot_start(current, &error);
            }
        }
    }

    /// Goes over to another generation, and answers whether it did. The call in progress, if there was one, has ended.
    fn switch(&mut self, old: Option<Current>, generation: Generation) -> (Option<Current>, bool) {
        let took_ms = milliseconds(generation.began.elapsed());
        let (version, digest) = (generation.version.clone(), generation.digest.clone());
        let view = generation.view();
        let (current, mode) = match Current::succeed(old, generation) {
            Ok(switched) => switched,
            Err(old) => {
                // Only a bug of the host gets here. The old generation lives on.
                tracing::error!(plugin = %self.plugin, "a new generation goes on from subscriptions that are not there");
                return (*old, false);
            }
        };
        self.serving.set(view);
        // What the version before gave up on, this one may be able to do.
        self.queue.release_deferred();
        self.queue.retry_parked();
        self.status.update(|status| {
            status.generation = current.number;
            status.version = Some(version.clone());
            status.digest = Some(digest.clone());
            status.phase = status::Phase::Serving;
            status.waits_for.clear();
            status.last_error = None;
            status.refused = None;
        });
        current.reporter.report(HostEvent::PluginLoaded { version, digest, mode, took_ms });
        current.show(&self.status, &self.queue);
        (Some(current), true)
    }

    fn count(&self, call: &Call, outcome: &'static str, took: Duration) {
        self.shared.metrics.called(&self.plugin, call.function(), outcome, took);
    }
}

async fn next_step(current: Option<&mut Current>, queue: &PluginQueue) -> Step {
    match current {
        Some(current) => current.next_step(queue).await,
        None => std::future::pending().await,
    }
}

async fn grace(token: &CancellationToken) {
    token.cancelled().await;
    tokio::time::sleep(GRACE).await;
}

fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;

//! Calls one plugin: its notifications and its keys, one call at a time, through every mishap.
//!
//! ```text
//!   Listener ─┐                         ┌ done
//!   Listener ─┼─► next ─► judge ─► call ┼ retry, park      the object alone waits
//!   queue ────┘     ▲                   └ instance lost    fresh one, after a back-off
//!                   └── access changes, slow timer, switch to another generation
//! ```
//!
//! A plugin has one [`Dispatcher`] for its whole life, and [`Generation`]s come and go in it. What an error costs is one object's
//! delay ([`retry`]); what a trap costs is the instance, and the object that it happened with is tried again
//! with care ([`suspects`]). A stateful plugin's fresh instance is told everything anew, a stateless one goes on.

mod call;
mod current;
mod enqueue;
mod fault;
mod generation;
mod queue;
mod retry;
mod suspects;

use std::sync::Arc;
use std::time::Duration;

use oarlock_informer::{Delivery, Outcome};
use oarlock_plugin::CallError;
use oarlock_plugin::contract::{Failure, Synced};
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

pub(crate) use self::call::{Answer, Call, LOSS_REASONS, MakeInstance, Maker};
use self::current::{CallKey, Current, Step};
pub use self::enqueue::EnqueueRule;
pub use self::fault::FaultHook;
pub(crate) use self::generation::{Generation, Serving, Slot, Switch};
pub use self::queue::PluginQueue;
pub use self::retry::{RestartPolicy, RetryPolicy};
use self::suspects::Verdict;
use crate::metrics::Metrics;
use crate::report::{self, Event, Mode};
use crate::status;

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
    board: status::Entry,
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
        board: status::Entry,
        queue: PluginQueue,
    ) -> (Self, mpsc::Sender<Switch>, Arc<Serving>) {
        let (sender, switches) = mpsc::channel(1);
        let serving = Arc::new(Serving::default());
        (Self { plugin, shared, board, queue, switches, serving: serving.clone() }, sender, serving)
    }

    /// Calls the plugin until the token is cancelled.
    pub(crate) async fn run(mut self, token: CancellationToken) {
        let mut current: Option<Current> = None;
        loop {
            let step = tokio::select! {
                biased;
                () = token.cancelled() => return,
                Some(Switch { generation, done }) = self.switches.recv() => {
                    current = self.switch(current, *generation);
                    // Whoever prepared it may have lost interest.
                    let _ = done.send(());
                    continue;
                }
                step = next_step(current.as_mut(), &self.queue, &self.shared.retry) => step,
            };
            if let Some(current) = &mut current {
                self.take(current, step, &token).await;
            }
        }
    }

    async fn take(&self, current: &mut Current, step: Step, token: &CancellationToken) {
        match step {
            Step::Access(index) => current.apply_access(index, &self.board),
            Step::RetryParked => {
                current.subscriptions.iter().for_each(|it| {
                    it.listener.retry_parked();
                });
                self.queue.retry_parked();
            }
            Step::Restart => self.restart(current, token).await,
            Step::Synced(index) => self.tell_synced(current, index, token).await,
            Step::Deliver(index, delivery) => self.deliver(current, index, delivery, token).await,
            Step::Reconcile(key) => self.reconcile(current, key, token).await,
        }
    }

    /// Hands one notification to the plugin, or its key to the queue.
    async fn deliver(
        &self,
        current: &mut Current,
        index: usize,
        delivery: Delivery,
        token: &CancellationToken,
    ) {
        let plan = current.subscriptions[index].plan.clone();
        let Delivery { key, notification, attempts, .. } = delivery;
        if !plan.enqueue.is_nothing() {
            // A change of what an object names concerns both, the old and the new.
            let states = [notification.old(), notification.new()];
            let keys: Vec<_> = states.into_iter().flatten().filter_map(|it| plan.enqueue.key(it)).collect();
            let is_full = keys.into_iter().any(|key| self.queue.add(key, None).is_err());
            let outcome =
                if is_full { Outcome::Retry { after: self.shared.retry.cap } } else { Outcome::Done };
            current.subscriptions[index].listener.finish(&key, outcome);
            return;
        }
        let object = notification.object();
        let type_ = call::type_of(&notification);
        let version = format!("{type_} {} {}", object.uid(), object.resource_version());
        let suspect = CallKey::Object(index, key.clone());
        match current.suspects.judge(&suspect, &version, &self.shared.retry) {
            Verdict::Call => {}
            Verdict::Wait(after) => {
                return current.subscriptions[index].listener.finish(&key, Outcome::Retry { after });
            }
            Verdict::Park => return current.subscriptions[index].listener.finish(&key, Outcome::Park),
        }
        if self.shared.fault.swallows() {
            return current.subscriptions[index].listener.finish(&key, Outcome::Done);
        }
        let call = Call::of(&plan.name, &plan.fields, &notification);
        let ended = self.call(current, &call, token).await;
        let (after, message, took) = match ended {
            Ended::GivenUp => return,
            Ended::Answered(Ok(_), took) => {
                current.suspects.clear(&suspect);
                current.subscriptions[index].listener.finish(&key, Outcome::Done);
                self.count(&call, "done", took);
                self.report_delivery(current, index, &notification, attempts, took, report::Delivery::Done);
                return;
            }
            Ended::Answered(Err(failure), took) => {
                current.suspects.clear(&suspect);
                let (message, after) = self.after_failure(failure, attempts);
                (after, message, took)
            }
            Ended::Lost(error) => {
                let after = current.suspects.lost(suspect, &version, &self.shared.retry);
                let message = error.to_string();
                self.lose(current, call.function(), &error);
                (after, message, Duration::ZERO)
            }
        };
        let about = format!("{} of {} {key}: {message}", call.function(), plan.name);
        self.board.trouble(&about);
        let (outcome, reported, counted) = match after {
            Some(after) => {
                let after_ms = milliseconds(after);
                (Outcome::Retry { after }, report::Delivery::Retry { message, after_ms }, "retry")
            }
            None => (Outcome::Park, report::Delivery::Parked { message }, "parked"),
        };
        current.subscriptions[index].listener.finish(&key, outcome);
        if current.is_alive() {
            self.count(&call, counted, took);
        }
        self.report_delivery(current, index, &notification, attempts, took, reported);
    }

    /// Tells the plugin that a subscription's initial adds are done.
    async fn tell_synced(&self, current: &mut Current, index: usize, token: &CancellationToken) {
        let subscription = current.subscriptions[index].plan.name.clone();
        let remaining = current.subscriptions.iter().filter(|it| !it.told_synced).count() - 1;
        let remaining = u32::try_from(remaining).unwrap_or(u32::MAX);
        if !current.exported.handler {
            return current.synced(index, remaining, &self.board);
        }
        let suspect = CallKey::Synced(index);
        match current.suspects.judge(&suspect, "", &self.shared.retry) {
            Verdict::Call => {}
            Verdict::Wait(after) => {
                current.subscriptions[index].tell_after = Instant::now() + after;
                return;
            }
            Verdict::Park => return current.synced(index, remaining, &self.board),
        }
        let call = Call::Synced(Synced { subscription: subscription.clone(), remaining });
        let (after, message) = match self.call(current, &call, token).await {
            Ended::GivenUp => return,
            Ended::Answered(Ok(_), took) => {
                current.suspects.clear(&suspect);
                self.count(&call, "done", took);
                return current.synced(index, remaining, &self.board);
            }
            Ended::Answered(Err(failure), took) => {
                let attempts = current.subscriptions[index].synced_attempts;
                current.subscriptions[index].synced_attempts += 1;
                let (message, after) = self.after_failure(failure, attempts);
                self.count(&call, if after.is_some() { "retry" } else { "parked" }, took);
                (after, message)
            }
            Ended::Lost(error) => {
                let after = current.suspects.lost(suspect, "", &self.shared.retry);
                let message = error.to_string();
                self.lose(current, call.function(), &error);
                (after, message)
            }
        };
        self.board.trouble(&format!("on-synced of {subscription}: {message}"));
        let outcome = match after {
            Some(after) => {
                current.subscriptions[index].tell_after = Instant::now() + after;
                report::Delivery::Retry { message, after_ms: milliseconds(after) }
            }
            None => report::Delivery::Parked { message },
        };
        let parked = matches!(outcome, report::Delivery::Parked { .. });
        current.reporter.report(Event::SyncedFailed { subscription, outcome });
        if parked {
            current.synced(index, remaining, &self.board);
        }
    }

    /// Has the plugin reconcile one key.
    async fn reconcile(&self, current: &mut Current, key: queue::Key, token: &CancellationToken) {
        let suspect = CallKey::Work(key.clone());
        match current.suspects.judge(&suspect, "", &self.shared.retry) {
            Verdict::Call => {}
            Verdict::Wait(after) => return self.queue.finish(&key, queue::Outcome::Again(after)),
            Verdict::Park => return self.queue.finish(&key, queue::Outcome::Park),
        }
        let call = Call::Reconcile(key.to_contract());
        let (after, message, took) = match self.call(current, &call, token).await {
            Ended::GivenUp => return self.queue.finish(&key, queue::Outcome::Again(Duration::ZERO)),
            Ended::Answered(Ok(answer), took) => {
                current.suspects.clear(&suspect);
                self.count(&call, "done", took);
                self.queue.finish(
                    &key,
                    match answer {
                        Answer::Done => queue::Outcome::Done,
                        Answer::RequeueAfter(after) => queue::Outcome::RequeueAfter(after),
                    },
                );
                return current.report_reconcile(&key, took, report::Delivery::Done);
            }
            Ended::Answered(Err(failure), took) => {
                current.suspects.clear(&suspect);
                let (message, after) = self.after_failure(failure, self.queue.failures(&key));
                (after, message, took)
            }
            Ended::Lost(error) => {
                let after = current.suspects.lost(suspect, "", &self.shared.retry);
                let message = error.to_string();
                self.lose(current, call.function(), &error);
                (after, message, Duration::ZERO)
            }
        };
        self.board.trouble(&format!("reconcile of {key}: {message}"));
        let (outcome, reported, counted) = match after {
            Some(after) => {
                let after_ms = milliseconds(after);
                (queue::Outcome::Failed(after), report::Delivery::Retry { message, after_ms }, "retry")
            }
            None => (queue::Outcome::Park, report::Delivery::Parked { message }, "parked"),
        };
        self.queue.finish(&key, outcome);
        if current.is_alive() {
            self.count(&call, counted, took);
        }
        current.report_reconcile(&key, took, reported);
    }

    /// Makes one call. The instance is taken along, and gone when the call does not come back with an answer.
    async fn call(&self, current: &mut Current, call: &Call, token: &CancellationToken) -> Ended {
        tokio::select! {
            biased;
            () = grace(token) => return Ended::GivenUp,
            () = current.reporter.room() => {}
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
            Ok(answer) => Ended::Answered(answer, began.elapsed()),
            Err(error) => Ended::Lost(error),
        }
    }

    /// The instance is gone. The next one comes after a wait that grows with every loss.
    fn lose(&self, current: &mut Current, function: &'static str, error: &CallError) {
        let (losses, wait) = current.restarts.lost(&self.shared.restart);
        current.lose(Instant::now() + wait);
        let reason = call::loss_reason(error);
        self.shared.metrics.lost(&self.plugin, reason);
        self.board.update(|status| {
            status.phase = status::Phase::Restarting;
            status.instances_lost += 1;
        });
        current.reporter.report(Event::InstanceLost {
            function,
            reason,
            message: error.to_string(),
            backtrace: call::backtrace(error).to_owned(),
            losses,
            restart_after_ms: milliseconds(wait),
        });
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
                self.board.update(|status| {
                    status.phase = status::Phase::Serving;
                    if mode == Mode::Replay {
                        status.subscriptions.iter_mut().for_each(|it| it.synced = false);
                    }
                });
                current.reporter.report(Event::InstanceRestarted { mode });
            }
            Err(error) => {
                self.board.trouble(&format!("a fresh instance: {error}"));
                self.lose(current, "start", &error);
            }
        }
    }

    /// Goes over to another generation. The call in progress, if there was one, has ended.
    fn switch(&mut self, old: Option<Current>, generation: Generation) -> Option<Current> {
        let took_ms = milliseconds(generation.began.elapsed());
        let (version, digest) = (generation.version.clone(), generation.digest.clone());
        let view = generation.view();
        let (current, mode) = match Current::succeed(old, generation) {
            Ok(switched) => switched,
            Err(old) => {
                // Only a bug of the host gets here. The old generation lives on.
                tracing::error!(plugin = %self.plugin, "a new generation goes on from subscriptions that are not there");
                return *old;
            }
        };
        self.serving.set(view);
        self.board.update(|status| {
            status.generation = current.number;
            status.version = Some(version.clone());
            status.digest = Some(digest.clone());
            status.phase = status::Phase::Serving;
            status.waits_for.clear();
            status.last_error = None;
            status.refused = None;
        });
        current.reporter.report(Event::PluginLoaded { version, digest, mode, took_ms });
        current.show(&self.board, &self.queue);
        Some(current)
    }

    /// Returns what to report of a failure, and when to try again; none for parking.
    fn after_failure(&self, failure: Failure, attempts: u32) -> (String, Option<Duration>) {
        match failure {
            Failure::Retry(message) => (message, self.shared.retry.after(attempts.saturating_add(1))),
            Failure::Terminal(message) => (message, None),
        }
    }

    fn count(&self, call: &Call, outcome: &'static str, took: Duration) {
        self.shared.metrics.called(&self.plugin, call.function(), outcome, took);
    }

    fn report_delivery(
        &self,
        current: &Current,
        index: usize,
        notification: &oarlock_informer::Notification,
        attempts: u32,
        took: Duration,
        outcome: report::Delivery,
    ) {
        let reporter = &current.reporter;
        if matches!(outcome, report::Delivery::Done) && !reporter.enabled(report::Level::Debug) {
            return;
        }
        let object = notification.object();
        reporter.report(Event::Delivered {
            subscription: current.subscriptions[index].plan.name.clone(),
            notification: call::type_of(notification),
            namespace: object.key().namespace().to_owned(),
            name: object.key().name().to_owned(),
            resource_version: object.resource_version().to_owned(),
            attempts,
            took_us: u64::try_from(took.as_micros()).unwrap_or(u64::MAX),
            outcome,
        });
    }
}

async fn next_step(current: Option<&mut Current>, queue: &PluginQueue, retry: &RetryPolicy) -> Step {
    match current {
        Some(current) => current.next_step(queue, retry).await,
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

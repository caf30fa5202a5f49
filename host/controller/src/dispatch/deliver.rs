//! One notification, and what its answer means for its object.

use std::time::Duration;

use oarlock_informer::{Delivery, Notification, Outcome};
use oarlock_plugin::contract::Synced;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::call::{self, Call};
use super::current::{CallKey, Current};
use super::loss::{About, Fate, given_up};
use super::suspects::Verdict;
use super::{Dispatcher, Ended, milliseconds};
use crate::report::{self, HostEvent};

// === impl Dispatcher ===

impl Dispatcher {
    /// Hands one notification to the plugin, or its key to the queue.
    pub(super) async fn deliver(
        &self,
        current: &mut Current,
        index: usize,
        delivery: Delivery,
        token: &CancellationToken,
    ) {
        let plan = &current.subscriptions[index].plan;
        if !plan.enqueue.is_nothing() {
            let Delivery { key, notification, .. } = delivery;
            // A change of what an object names concerns both, the old and the new.
            let states = [notification.old(), notification.new()];
            let keys: Vec<_> = states.into_iter().flatten().filter_map(|it| plan.enqueue.key(it)).collect();
            let version = notification.object().resource_version();
            let is_full = keys.into_iter().any(|key| self.queue.add_for(key, &version).is_err());
            let outcome = if is_full { Outcome::Retry { after: current.retry.cap } } else { Outcome::Done };
            current.subscriptions[index].listener.finish(&key, outcome);
            return;
        }
        if !current.suspects.is_empty() {
            let key = CallKey::Object(index, delivery.key.clone());
            let version = version_of(&delivery.notification);
            let outcome = match current.suspects.judge(&key, &version, &current.retry) {
                Verdict::Call => None,
                Verdict::Defer => Some(Outcome::Defer),
                Verdict::Park => Some(Outcome::Park),
            };
            if let Some(outcome) = outcome {
                return current.subscriptions[index].listener.finish(&delivery.key, outcome);
            }
        }
        self.notify(current, index, delivery, token).await;
    }

    /// Hands one notification to the plugin, be its object a suspect or not.
    pub(super) async fn notify(
        &self,
        current: &mut Current,
        index: usize,
        delivery: Delivery,
        token: &CancellationToken,
    ) {
        let plan = current.subscriptions[index].plan.clone();
        let Delivery { key, notification, attempts, arrived } = delivery;
        if self.shared.fault.swallows() {
            return current.subscriptions[index].listener.finish(&key, Outcome::Done);
        }
        if attempts == 0 {
            self.shared.metrics.waited(&self.plugin, arrived.elapsed());
        }
        let call = Call::of(&plan, &notification).await;
        let suspect = || CallKey::Object(index, key.clone());
        let (outcome, reported, took) = match self.call(current, &call, token).await {
            Ended::GivenUp => return,
            Ended::Answered(answer, took) => {
                if !current.suspects.is_empty() {
                    current.suspects.clear(&suspect());
                }
                let Err(failure) = answer else {
                    current.subscriptions[index].listener.finish(&key, Outcome::Done);
                    self.count(&call, "done", took);
                    let done = report::CallOutcome::Done;
                    return self.report_delivery(current, index, &notification, attempts, took, done);
                };
                let (message, after) = after_failure(current, failure, attempts);
                self.status.record_error(&format!("{} of {} {key}: {message}", call.function(), plan.name));
                self.count(&call, if after.is_some() { "retry" } else { "parked" }, took);
                match after {
                    Some(after) => {
                        let after_ms = milliseconds(after);
                        (Outcome::Retry { after }, report::CallOutcome::Retry { message, after_ms }, took)
                    }
                    None => (Outcome::Park, report::CallOutcome::Parked { message }, took),
                }
            }
            Ended::Lost(error) => {
                let about = About::object(&plan.name, notification.object().key());
                let version = version_of(&notification);
                match self.lost(current, &call, Some((suspect(), &version, about)), &error) {
                    Fate::Again => return current.subscriptions[index].listener.finish(&key, Outcome::Defer),
                    Fate::Parked(losses) => {
                        let message = given_up(losses);
                        (Outcome::Park, report::CallOutcome::Parked { message }, Duration::ZERO)
                    }
                }
            }
        };
        current.subscriptions[index].listener.finish(&key, outcome);
        self.report_delivery(current, index, &notification, attempts, took, reported);
    }

    /// Tells the plugin that a subscription's initial adds are done.
    pub(super) async fn tell_synced(&self, current: &mut Current, index: usize, token: &CancellationToken) {
        match current.suspects.judge(&CallKey::Synced(index), "", &current.retry) {
            Verdict::Call => self.call_synced(current, index, token).await,
            Verdict::Defer => current.subscriptions[index].synced_deferred = true,
            Verdict::Park => {
                current.subscriptions[index].synced_parked = true;
                current.synced(index, remaining(current), &self.status);
            }
        }
    }

    /// The same, be it a suspect or not.
    pub(super) async fn call_synced(&self, current: &mut Current, index: usize, token: &CancellationToken) {
        let subscription = current.subscriptions[index].plan.name.clone();
        let remaining = remaining(current);
        current.subscriptions[index].synced_deferred = false;
        if !current.exported.handler {
            return current.synced(index, remaining, &self.status);
        }
        let suspect = CallKey::Synced(index);
        let call = Call::Synced(Synced { subscription: subscription.clone(), remaining });
        let outcome = match self.call(current, &call, token).await {
            Ended::GivenUp => return,
            Ended::Answered(answer, took) => {
                current.suspects.clear(&suspect);
                let Err(failure) = answer else {
                    self.count(&call, "done", took);
                    return current.synced(index, remaining, &self.status);
                };
                let attempts = current.subscriptions[index].synced_attempts;
                current.subscriptions[index].synced_attempts += 1;
                let (message, after) = after_failure(current, failure, attempts);
                self.status.record_error(&format!("on-synced of {subscription}: {message}"));
                self.count(&call, if after.is_some() { "retry" } else { "parked" }, took);
                match after {
                    Some(after) => {
                        current.subscriptions[index].tell_after = Instant::now() + after;
                        report::CallOutcome::Retry { message, after_ms: milliseconds(after) }
                    }
                    None => report::CallOutcome::Parked { message },
                }
            }
            Ended::Lost(error) => {
                let about = About::subscription(&subscription);
                match self.lost(current, &call, Some((suspect, "", about)), &error) {
                    Fate::Again => {
                        current.subscriptions[index].synced_deferred = true;
                        return;
                    }
                    Fate::Parked(losses) => report::CallOutcome::Parked { message: given_up(losses) },
                }
            }
        };
        let parked = matches!(outcome, report::CallOutcome::Parked { .. });
        current.reporter.report(HostEvent::SyncedFailed { subscription, outcome });
        if parked {
            current.subscriptions[index].synced_parked = true;
            current.synced(index, remaining, &self.status);
        }
    }

    fn report_delivery(
        &self,
        current: &Current,
        index: usize,
        notification: &Notification,
        attempts: u32,
        took: Duration,
        outcome: report::CallOutcome,
    ) {
        let reporter = &current.reporter;
        if matches!(outcome, report::CallOutcome::Done) && !reporter.enabled(report::Level::Debug) {
            return;
        }
        let object = notification.object();
        reporter.report(HostEvent::Delivered {
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

/// What to report of a failure that was answered, and when to try again; none for parking.
pub(super) fn after_failure(
    current: &Current,
    failure: oarlock_plugin::contract::Failure,
    attempts: u32,
) -> (String, Option<Duration>) {
    use oarlock_plugin::contract::Failure;
    match failure {
        Failure::Retry(message) => (message, current.retry.after(attempts.saturating_add(1))),
        Failure::Terminal(message) => (message, None),
    }
}

/// What changes with everything that happens to the object, but not when it is replayed.
fn version_of(notification: &Notification) -> String {
    let object = notification.object();
    let is_gone = if notification.new().is_some() { "" } else { "deleted " };
    format!("{is_gone}{} {}", object.uid(), object.resource_version())
}

/// How many subscriptions are to come when one more is there.
fn remaining(current: &Current) -> u32 {
    let n_missing = current.subscriptions.iter().filter(|it| !it.told_synced).count();
    u32::try_from(n_missing.saturating_sub(1)).unwrap_or(u32::MAX)
}

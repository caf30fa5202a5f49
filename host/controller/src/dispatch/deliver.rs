//! One notification, and what its answer means for its object.

use std::time::Duration;

use oarlock_informer::{Delivery, Notification, Outcome};
use oarlock_plugin::contract::Synced;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::call::{self, Call};
use super::current::{CallKey, Current};
use super::suspects::Verdict;
use super::{Dispatcher, Ended, milliseconds};
use crate::report::{self, Event};

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
        let plan = current.subscriptions[index].plan.clone();
        let Delivery { key, notification, attempts, .. } = delivery;
        if !plan.enqueue.is_nothing() {
            // A change of what an object names concerns both, the old and the new.
            let states = [notification.old(), notification.new()];
            let keys: Vec<_> = states.into_iter().flatten().filter_map(|it| plan.enqueue.key(it)).collect();
            let version = notification.object().resource_version();
            let is_full = keys.into_iter().any(|key| self.queue.add_for(key, &version).is_err());
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
        let call = Call::of(&plan, &notification).await;
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
    pub(super) async fn tell_synced(&self, current: &mut Current, index: usize, token: &CancellationToken) {
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
            Verdict::Park => {
                current.subscriptions[index].synced_parked = true;
                return current.synced(index, remaining, &self.board);
            }
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
            current.subscriptions[index].synced_parked = true;
            current.synced(index, remaining, &self.board);
        }
    }

    fn report_delivery(
        &self,
        current: &Current,
        index: usize,
        notification: &Notification,
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

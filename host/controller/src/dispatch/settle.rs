//! The last stage of the pipeline: applies a call's result to its object or key, and records it in the
//! status, the report and the metrics.
//!
//! | the result | the host |
//! |---|---|
//! | done | delivers the next notification of the object; removes the key, or requeues it as asked |
//! | `retry` | calls again after a back-off; parks after [`RetryPolicy::tries`] failures in a row |
//! | `retry-after` | the same, after the wait that the plugin asks for, if that is longer |
//! | `terminal` | parks the object or key at once |
//! | instance lost | makes a fresh instance; see [`loss`](super::loss) for the object or key |
//!
//! A parked object or key is tried again at its next event, at a swap, and by the slow timer
//! ([`RetryPolicy::parked_again`]).
//!
//! [`RetryPolicy::tries`]: super::RetryPolicy::tries
//! [`RetryPolicy::parked_again`]: super::RetryPolicy::parked_again

use std::time::Duration;

use oarlock_plugin::CallError;
use oarlock_plugin::contract::{Failure, RetryInfo};
use tokio::time::Instant;

use super::active_generation::{ActiveGeneration, DrainingGeneration};
use super::call::{self, Answer, Answering};
use super::due_call::{DueCall, Outcome};
use super::parked::ParkedNote;
use super::{Dispatcher, milliseconds};
use crate::report::{self, CallOutcome, HostEvent, Reporter};

/// The longest wait that a plugin may ask for with `retry-after`.
const LONGEST_ASKED: Duration = Duration::from_secs(3600);

// === impl Dispatcher ===

impl Dispatcher {
    /// Settles a call that was answered.
    pub(super) fn settle(
        &self,
        active: &mut ActiveGeneration,
        due: &DueCall,
        answer: Result<Answer, Failure>,
        took: Duration,
    ) {
        active.restarts.answered();
        if !active.crash_backoff.is_empty() {
            active.crash_backoff.clear(&due.key());
        }
        self.count_reconcile(due, &answer);
        let (outcome, reported) = match answer {
            Ok(Answer::Done) => (Outcome::Done, CallOutcome::Done),
            Ok(Answer::RequeueAfter(after)) => (Outcome::RequeueAfter(after), CallOutcome::Done),
            Err(failure) => self.settle_failure(active, due, failure),
        };
        self.metrics.called(due.function(), outcome.label(), took);
        self.finish(active, due, outcome, Some((reported, took)));
    }

    /// Settles a call that began at the given time and cost the instance of a lane.
    pub(super) fn settle_lost(
        &self,
        active: &mut ActiveGeneration,
        due: &DueCall,
        lane: usize,
        began: Instant,
        error: &CallError,
    ) {
        let loss = self.settle_loss(active, due, lane, began, error);
        let (outcome, reported) = match loss.again_after {
            Some(_) => (Outcome::Defer, None),
            None => (Outcome::Park, Some((CallOutcome::Parked { message: loss.reason() }, Duration::ZERO))),
        };
        self.finish(active, due, outcome, reported);
    }

    /// Settles a call of a generation that is not active any more. Whatever it did not handle is tried again
    /// by the active one, if that serves the same objects.
    pub(super) fn settle_drained(
        &self,
        draining: &DrainingGeneration,
        due: &DueCall,
        result: Answering,
        took: Duration,
    ) {
        let outcome = match result {
            Ok(answer) => {
                self.count_reconcile(due, &answer);
                let (outcome, reported) = match answer {
                    Ok(Answer::Done) => (Outcome::Done, CallOutcome::Done),
                    Ok(Answer::RequeueAfter(after)) => (Outcome::RequeueAfter(after), CallOutcome::Done),
                    Err(failure) => {
                        let (message, asked) = match failure {
                            Failure::Retry(message) | Failure::Terminal(message) => (message, Duration::ZERO),
                            Failure::RetryAfter(RetryInfo { message, after_ms }) => {
                                (message, asked(after_ms))
                            }
                        };
                        // The version that serves may be able to handle it at once.
                        let after_ms = milliseconds(asked);
                        (Outcome::RetryAfter(asked), CallOutcome::Retry { message, after_ms })
                    }
                };
                self.metrics.called(due.function(), outcome.label(), took);
                let name = |subscription: usize| draining.listeners[subscription].name().to_owned();
                report_call(&draining.reporter, name, due, took, reported);
                outcome
            }
            Err(error) => {
                self.lost_while_draining(draining, due, &error);
                Outcome::RetryAfter(Duration::ZERO)
            }
        };
        match due {
            DueCall::Notification { subscription, delivery } => {
                if let Some(outcome) = outcome.of_delivery() {
                    draining.listeners[*subscription].finish(&delivery.key, outcome);
                }
            }
            // The active generation has a call of its own.
            DueCall::Synced { .. } => {}
            DueCall::Key(key) => self.queue.finish(key, outcome),
        }
    }

    /// Counts an answer of `reconcile` that is neither a plain success nor a failure that is tried again.
    fn count_reconcile(&self, due: &DueCall, answer: &Result<Answer, Failure>) {
        match (due, answer) {
            (DueCall::Key(_), Ok(Answer::RequeueAfter(_))) => self.metrics.requeued(),
            (DueCall::Key(_), Err(Failure::Terminal(_))) => self.metrics.terminal(),
            _ => {}
        }
    }

    /// Decides between another attempt and parking, and records the failure in the plugin's status.
    fn settle_failure(
        &self,
        active: &mut ActiveGeneration,
        due: &DueCall,
        failure: Failure,
    ) -> (Outcome, CallOutcome) {
        let n_failures = due.n_failures(active, &self.queue).saturating_add(1);
        let (message, retry_after, reason) = match failure {
            Failure::Retry(message) => (message, active.retry.after(n_failures), "failed"),
            Failure::RetryAfter(RetryInfo { message, after_ms }) => {
                (message, active.retry.after(n_failures).map(|after| after.max(asked(after_ms))), "failed")
            }
            Failure::Terminal(message) => (message, None, "terminal"),
        };
        let retry_after = if active.is_superseded(due) { Some(Duration::ZERO) } else { retry_after };
        if retry_after.is_none() {
            let note = ParkedNote::new(reason, n_failures, &message);
            active.note_parked(due.key(), note, &self.queue);
        }
        self.status.record_error(&format!("{} of {}: {message}", due.function(), due.describe(active)));
        match retry_after {
            Some(after) => {
                (Outcome::RetryAfter(after), CallOutcome::Retry { message, after_ms: milliseconds(after) })
            }
            None => (Outcome::Park, CallOutcome::Parked { message }),
        }
    }

    /// Applies an outcome to what the call was for, and reports it.
    pub(super) fn finish(
        &self,
        active: &mut ActiveGeneration,
        due: &DueCall,
        outcome: Outcome,
        reported: Option<(CallOutcome, Duration)>,
    ) {
        match due {
            DueCall::Notification { subscription, delivery } => {
                // A listener whose delivery is cancelled ends with the plugin.
                let Some(outcome) = outcome.of_delivery() else { return };
                active.subscriptions[*subscription].listener.finish(&delivery.key, outcome);
            }
            DueCall::Synced { subscription } => active.subscriptions[*subscription].finish_synced(outcome),
            DueCall::Key(key) => self.queue.finish(key, outcome),
        }
        if let Some((reported, took)) = reported {
            let name = |subscription: usize| active.subscriptions[subscription].plan.name.clone();
            report_call(&active.reporter, name, due, took, reported);
        }
        if matches!(outcome, Outcome::Park) {
            active.expect_parked();
        }
        if let (DueCall::Synced { subscription }, Outcome::Done | Outcome::Park) = (due, outcome)
            && active.subscriptions[*subscription].is_synced()
        {
            active.announce_synced(*subscription, &self.status);
        }
    }
}

/// Returns the wait that a plugin asks for, as far as it may.
fn asked(after_ms: u32) -> Duration {
    Duration::from_millis(after_ms.into()).min(LONGEST_ASKED)
}

fn report_call(
    reporter: &Reporter,
    subscription_name: impl Fn(usize) -> String,
    due: &DueCall,
    took: Duration,
    outcome: CallOutcome,
) {
    let is_done = matches!(outcome, CallOutcome::Done);
    let took_us = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
    match due {
        // SubscriptionSynced reports it.
        DueCall::Synced { .. } if is_done => {}
        _ if is_done && !reporter.enabled(report::Level::Debug) => {}
        DueCall::Notification { subscription, delivery } => {
            let object = delivery.notification.object();
            reporter.report(HostEvent::Delivered {
                subscription: subscription_name(*subscription),
                notification: call::type_of(&delivery.notification),
                namespace: object.key().namespace().to_owned(),
                name: object.key().name().to_owned(),
                resource_version: object.resource_version().to_owned(),
                attempts: delivery.attempts,
                took_us,
                outcome,
            });
        }
        DueCall::Synced { subscription } => {
            let subscription = subscription_name(*subscription);
            reporter.report(HostEvent::SyncedFailed { subscription, outcome });
        }
        DueCall::Key(key) => reporter.report(HostEvent::Reconciled {
            kind: key.kind.clone(),
            namespace: key.namespace.clone(),
            name: key.name.clone(),
            took_us,
            outcome,
        }),
    }
}

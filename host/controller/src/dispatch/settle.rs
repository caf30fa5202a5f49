//! The last stage of the pipeline: applies a call's result to its object or key, and records it in the
//! status, the report and the metrics.
//!
//! | the result | the host |
//! |---|---|
//! | done | delivers the next notification of the object; removes the key, or requeues it as asked |
//! | `retry` | calls again after a back-off; parks after [`RetryPolicy::tries`] failures in a row |
//! | `terminal` | parks the object or key at once |
//! | instance lost | makes a fresh instance; see [`loss`](super::loss) for the object or key |
//!
//! A parked object or key is tried again at its next event, at a swap, and by the slow timer
//! ([`RetryPolicy::parked_again`]).
//!
//! [`RetryPolicy::tries`]: super::RetryPolicy::tries
//! [`RetryPolicy::parked_again`]: super::RetryPolicy::parked_again

use std::time::Duration;

use oarlock_informer as informer;
use oarlock_plugin::contract::Failure;

use super::active_generation::ActiveGeneration;
use super::call::{self, Answer, CallResult};
use super::due_call::{DueCall, Outcome};
use super::parked::ParkedNote;
use super::{Dispatcher, milliseconds};
use crate::report::{self, CallOutcome, HostEvent};

// === impl Dispatcher ===

impl Dispatcher {
    /// Settles a call that was made.
    pub(super) fn settle(
        &self,
        active: &mut ActiveGeneration,
        due: DueCall,
        function: &'static str,
        result: CallResult,
    ) {
        match result {
            CallResult::Answered { answer, took } => {
                if !active.crash_backoff.is_empty() {
                    active.crash_backoff.clear(&due.key());
                }
                let (outcome, reported) = match answer {
                    Ok(Answer::Done) => (Outcome::Done, CallOutcome::Done),
                    Ok(Answer::RequeueAfter(after)) => (Outcome::RequeueAfter(after), CallOutcome::Done),
                    Err(failure) => self.settle_failure(active, &due, function, failure),
                };
                self.metrics.called(function, outcome.label(), took);
                self.finish(active, &due, outcome, Some((reported, took)));
            }
            CallResult::InstanceLost(error) => {
                let loss = self.settle_loss(active, &due, function, &error);
                let (outcome, reported) = match loss.again_after {
                    Some(_) => (Outcome::Defer, None),
                    None => (
                        Outcome::Park,
                        Some((CallOutcome::Parked { message: loss.reason() }, Duration::ZERO)),
                    ),
                };
                self.finish(active, &due, outcome, reported);
            }
            CallResult::Cancelled => self.finish(active, &due, Outcome::Cancelled, None),
        }
    }

    /// Decides between another attempt and parking, and records the failure in the plugin's status.
    fn settle_failure(
        &self,
        active: &mut ActiveGeneration,
        due: &DueCall,
        function: &'static str,
        failure: Failure,
    ) -> (Outcome, CallOutcome) {
        let n_failures = due.n_failures(active, &self.queue).saturating_add(1);
        let (message, retry_after, reason) = match failure {
            Failure::Retry(message) => (message, active.retry.after(n_failures), "failed"),
            Failure::Terminal(message) => (message, None, "terminal"),
        };
        if retry_after.is_none() {
            let note = ParkedNote::new(reason, n_failures, &message);
            active.note_parked(due.key(), note, &self.queue);
        }
        self.status.record_error(&format!("{function} of {}: {message}", due.describe(active)));
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
                let outcome = match outcome {
                    Outcome::Done | Outcome::RequeueAfter(_) => informer::listener::Outcome::Done,
                    Outcome::RetryAfter(after) => informer::listener::Outcome::Retry { after },
                    Outcome::Defer => informer::listener::Outcome::Defer,
                    Outcome::Park => informer::listener::Outcome::Park,
                    // The listener ends with the plugin.
                    Outcome::Cancelled => return,
                };
                active.subscriptions[*subscription].listener.finish(&delivery.key, outcome);
            }
            DueCall::Synced { subscription } => active.subscriptions[*subscription].finish_synced(outcome),
            DueCall::Key(key) => self.queue.finish(key, outcome),
        }
        if let Some((reported, took)) = reported {
            report_call(active, due, took, reported);
        }
        if let (DueCall::Synced { subscription }, Outcome::Done | Outcome::Park) = (due, outcome) {
            active.announce_synced(*subscription, &self.status);
        }
    }
}

fn report_call(active: &ActiveGeneration, due: &DueCall, took: Duration, outcome: CallOutcome) {
    let reporter = &active.reporter;
    let is_done = matches!(outcome, CallOutcome::Done);
    let took_us = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
    let subscription_name = |subscription: usize| active.subscriptions[subscription].plan.name.clone();
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

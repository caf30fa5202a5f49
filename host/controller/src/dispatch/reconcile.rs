//! One key, and what its answer means for it.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::call::{Answer, Call};
use super::current::{CallKey, Current};
use super::deliver::after_failure;
use super::loss::{About, Fate, given_up};
use super::queue;
use super::suspects::Verdict;
use super::{Dispatcher, Ended, milliseconds};
use crate::report::{self, HostEvent};

// === impl Dispatcher ===

impl Dispatcher {
    /// Has the plugin reconcile one key.
    pub(super) async fn reconcile(&self, current: &mut Current, key: queue::Key, token: &CancellationToken) {
        if !current.suspects.is_empty() {
            let suspect = CallKey::Work(key.clone());
            match current.suspects.judge(&suspect, &self.queue.version(&key), &current.retry) {
                Verdict::Call => {}
                Verdict::Defer => return self.queue.finish(&key, queue::Outcome::Defer),
                Verdict::Park => return self.queue.finish(&key, queue::Outcome::Park),
            }
        }
        self.reconcile_now(current, key, token).await;
    }

    /// The same, be the key a suspect or not.
    pub(super) async fn reconcile_now(
        &self,
        current: &mut Current,
        key: queue::Key,
        token: &CancellationToken,
    ) {
        let call = Call::Reconcile(key.to_contract());
        let suspect = || CallKey::Work(key.clone());
        let (outcome, reported, took) = match self.call(current, &call, token).await {
            Ended::GivenUp => return self.queue.finish(&key, queue::Outcome::Again(Duration::ZERO)),
            Ended::Answered(answer, took) => {
                if !current.suspects.is_empty() {
                    current.suspects.clear(&suspect());
                }
                match answer {
                    Ok(answer) => {
                        self.count(&call, "done", took);
                        let outcome = match answer {
                            Answer::Done => queue::Outcome::Done,
                            Answer::RequeueAfter(after) => queue::Outcome::RequeueAfter(after),
                        };
                        (outcome, report::CallOutcome::Done, took)
                    }
                    Err(failure) => {
                        let (message, after) = after_failure(current, failure, self.queue.failures(&key));
                        self.status.record_error(&format!("reconcile of {key}: {message}"));
                        self.count(&call, if after.is_some() { "retry" } else { "parked" }, took);
                        match after {
                            Some(after) => {
                                let after_ms = milliseconds(after);
                                let reported = report::CallOutcome::Retry { message, after_ms };
                                (queue::Outcome::Failed(after), reported, took)
                            }
                            None => (queue::Outcome::Park, report::CallOutcome::Parked { message }, took),
                        }
                    }
                }
            }
            Ended::Lost(error) => {
                let version = self.queue.version(&key);
                let what = (suspect(), version.as_str(), About::key(&key));
                match self.lost(current, &call, Some(what), &error) {
                    Fate::Again => return self.queue.finish(&key, queue::Outcome::Defer),
                    Fate::Parked(losses) => {
                        let message = given_up(losses);
                        (queue::Outcome::Park, report::CallOutcome::Parked { message }, Duration::ZERO)
                    }
                }
            }
        };
        self.queue.finish(&key, outcome);
        report_reconcile(current, &key, took, reported);
    }
}

fn report_reconcile(current: &Current, key: &queue::Key, took: Duration, outcome: report::CallOutcome) {
    if matches!(outcome, report::CallOutcome::Done) && !current.reporter.enabled(report::Level::Debug) {
        return;
    }
    current.reporter.report(HostEvent::Reconciled {
        kind: key.kind.clone(),
        namespace: key.namespace.clone(),
        name: key.name.clone(),
        took_us: u64::try_from(took.as_micros()).unwrap_or(u64::MAX),
        outcome,
    });
}

//! One key, and what its answer means for it.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::call::{Answer, Call};
use super::current::{CallKey, Current};
use super::queue;
use super::suspects::Verdict;
use super::{Dispatcher, Ended, milliseconds};
use crate::report::{self, Event};

// === impl Dispatcher ===

impl Dispatcher {
    /// Has the plugin reconcile one key.
    pub(super) async fn reconcile(&self, current: &mut Current, key: queue::Key, token: &CancellationToken) {
        let suspect = CallKey::Work(key.clone());
        let version = self.queue.version(&key);
        match current.suspects.judge(&suspect, &version, &self.shared.retry) {
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
                return report_reconcile(current, &key, took, report::Delivery::Done);
            }
            Ended::Answered(Err(failure), took) => {
                current.suspects.clear(&suspect);
                let (message, after) = self.after_failure(failure, self.queue.failures(&key));
                (after, message, took)
            }
            Ended::Lost(error) => {
                let after = current.suspects.lost(suspect, &version, &self.shared.retry);
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
        report_reconcile(current, &key, took, reported);
    }
}

fn report_reconcile(current: &Current, key: &queue::Key, took: Duration, outcome: report::Delivery) {
    if matches!(outcome, report::Delivery::Done) && !current.reporter.enabled(report::Level::Debug) {
        return;
    }
    current.reporter.report(Event::Reconciled {
        kind: key.kind.clone(),
        namespace: key.namespace.clone(),
        name: key.name.clone(),
        took_us: u64::try_from(took.as_micros()).unwrap_or(u64::MAX),
        outcome,
    });
}

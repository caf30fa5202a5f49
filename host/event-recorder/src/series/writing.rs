//! One write with its retries.

use k8s_openapi::api::events::v1::Event;
use rand::Rng;
use serde_json::json;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::{Config, Work, cache::Purpose};
use crate::sink::{EventSink, SinkError};

/// The greatest random addition to the retry time, as a fraction (EV-05).
const JITTER: f64 = 0.25;

pub(super) struct Writing<'a, S> {
    pub(super) sink: &'a S,
    pub(super) config: &'a Config,
    pub(super) closing: CancellationToken,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Outcome {
    Written,
    /// A retry would be refused too.
    Refused,
    /// A later write may succeed.
    Failed,
}

// === impl Writing ===

impl<S: EventSink<Event>> Writing<'_, S> {
    /// Writes the Event. A periodic write is tried only once.
    pub(super) async fn write(&self, work: Work) -> (Purpose, Outcome) {
        let Work { purpose, event, mut random } = work;
        let most = if matches!(purpose, Purpose::New) { self.config.tries } else { 1 };
        let mut tries = 0;
        loop {
            let error = match self.once(&event).await {
                Ok(()) => return (purpose, Outcome::Written),
                Err(error) => error,
            };
            tries += 1;
            let is_series = event.series.is_some();
            // The patch found no Event, and the create found one: the first write arrived in between (EV-04).
            let is_retried = error.is_retried() || is_series && matches!(error, SinkError::AlreadyExists(_));
            let wait = self.config.sleep.mul_f64(1.0 + JITTER * random.random::<f64>());
            let may_retry = is_retried && tries < most;
            if !may_retry || self.closing.run_until_cancelled(sleep(wait)).await.is_none() {
                tracing::warn!(reason = event.reason, tries, %error, "an Event was not recorded");
                return (purpose, if is_retried { Outcome::Failed } else { Outcome::Refused });
            }
        }
    }

    async fn once(&self, event: &Event) -> Result<(), SinkError> {
        if let Some(series) = &event.series {
            match self.sink.patch(event, &json!({ "series": series })).await {
                Err(SinkError::NotFound(_)) => {}
                answer => return answer.map(drop),
            }
        }
        let mut event = event.clone();
        event.metadata.resource_version = None;
        self.sink.create(&event).await.map(drop)
    }
}

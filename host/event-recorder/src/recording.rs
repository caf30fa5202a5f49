//! A recording: correlates the Events of one queue and writes them.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use k8s_openapi::api::core::v1::Event;
use rand::{Rng, SeedableRng, rngs::SmallRng};
use tokio_util::sync::CancellationToken;

use crate::{
    broadcaster::Watch,
    correlator::{self, Correlated, Correlator},
    sink::{EventSink, SinkError},
};

/// The configuration of a recording. The default is client-go's.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Config {
    /// The configuration of the correlator.
    pub correlator: correlator::Config,
    /// The greatest number of tries of a write.
    pub tries: u32,
    /// The time between two tries; after the first one, a random part of it.
    pub sleep: Duration,
    /// The seed of random numbers.
    pub seed: u64,
}

/// Writes the Events of one queue to one sink, one after another, with its own correlator (ER-08). While a
/// write is retried, the following Events wait.
pub struct Recording<S> {
    watch: Watch<Event>,
    sink: S,
    correlator: Correlator,
    config: Config,
    random: SmallRng,
    stats: Arc<Stats>,
}

/// Counts of Events by outcome.
#[derive(Debug, Default)]
pub struct Stats {
    pub(crate) recorded: AtomicU64,
    pub(crate) filtered: AtomicU64,
    pub(crate) abandoned: AtomicU64,
    pub(crate) dropped: AtomicU64,
}

// === impl Config ===

impl Default for Config {
    fn default() -> Self {
        Self {
            correlator: correlator::Config::default(),
            tries: 12,
            sleep: Duration::from_secs(10),
            seed: rand::random(),
        }
    }
}

// === impl Recording ===

impl<S: EventSink<Event>> Recording<S> {
    /// Returns a recording; [`run`](Self::run) starts it.
    pub fn new(watch: Watch<Event>, sink: S, config: Config) -> Self {
        let mut random = SmallRng::seed_from_u64(config.seed);
        let correlator = Correlator::new(config.correlator, SmallRng::from_rng(&mut random));
        Self { watch, sink, correlator, config, random, stats: Arc::default() }
    }

    /// Returns the counts, which change while it runs.
    pub fn stats(&self) -> Arc<Stats> {
        self.stats.clone()
    }

    /// Records until the broadcaster is dropped or shut down and the queue is empty. When the token is
    /// cancelled it returns at once, also during a request.
    pub async fn run(mut self, token: CancellationToken) {
        let recording = async {
            let closing = self.watch.closing();
            while let Some(event) = self.watch.next().await {
                // In a box, so that a task that waits for an Event is small.
                Box::pin(self.record(&event, &closing)).await;
            }
        };
        token.run_until_cancelled(recording).await;
    }

    /// Correlates and writes an Event, with retries (ER-05, ER-06). After the shutdown (`closing`) it tries
    /// once.
    pub(crate) async fn record(&mut self, event: &Event, closing: &CancellationToken) {
        let Some(correlated) = self.correlator.correlate(event) else {
            self.stats.filtered.fetch_add(1, Ordering::Relaxed);
            tracing::debug!(
                reason = event.reason,
                "the spam filter dropped an Event: too many for one object"
            );
            return;
        };
        let mut tries = 0;
        loop {
            let error = match self.write(&correlated).await {
                Ok(stored) => {
                    self.stats.recorded.fetch_add(1, Ordering::Relaxed);
                    self.correlator.update(&stored);
                    return;
                }
                Err(error) => error,
            };
            tries += 1;
            let mut wait = self.config.sleep;
            if tries == 1 {
                // Spreads the retries of many clients when the API server comes back.
                wait = wait.mul_f64(self.random.random());
            }
            let may_retry = error.is_retried() && tries < self.config.tries;
            if !may_retry || closing.run_until_cancelled(tokio::time::sleep(wait)).await.is_none() {
                self.stats.abandoned.fetch_add(1, Ordering::Relaxed);
                tracing::warn!(reason = event.reason, tries, %error, "an Event was not recorded and is dropped");
                return;
            }
        }
    }

    async fn write(&self, Correlated { event, patch }: &Correlated) -> Result<Event, SinkError> {
        if let Some(patch) = patch {
            match self.sink.patch(event, patch).await {
                // The Event has expired in the API server: create it again.
                Err(SinkError::NotFound(_)) => {}
                answer => return answer,
            }
        }
        let mut event = event.clone();
        event.metadata.resource_version = None;
        self.sink.create(&event).await
    }
}

// === impl Stats ===

impl Stats {
    /// Returns the number of written Events.
    pub fn recorded(&self) -> u64 {
        self.recorded.load(Ordering::Relaxed)
    }

    /// Returns the number of Events that the spam filter dropped.
    pub fn filtered(&self) -> u64 {
        self.filtered.load(Ordering::Relaxed)
    }

    /// Returns the number of Events that could not be written.
    pub fn abandoned(&self) -> u64 {
        self.abandoned.load(Ordering::Relaxed)
    }

    /// Returns the number of Events that were dropped because too many writes waited.
    pub fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests;

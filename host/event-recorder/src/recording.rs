//! From a queue of Events to what is written of them.

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

/// How a recording behaves. The default is client-go's.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Config {
    /// What becomes of Events that are like others.
    pub correlator: correlator::Config,
    /// How often a write is tried.
    pub tries: u32,
    /// How long to wait between two tries; after the first, at random up to this.
    pub sleep: Duration,
    /// For what is left to chance.
    pub seed: u64,
}

/// Writes the Events of one queue to one sink, one after another, with a memory of its own (ER-08). While the API server
/// cannot be reached, the others wait behind the one that is tried.
pub struct Recording<S> {
    watch: Watch<Event>,
    sink: S,
    correlator: Correlator,
    config: Config,
    random: SmallRng,
    stats: Arc<Stats>,
}

/// What became of the Events, counted from the beginning.
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
    /// Makes a recording that has not begun.
    pub fn new(watch: Watch<Event>, sink: S, config: Config) -> Self {
        let mut random = SmallRng::seed_from_u64(config.seed);
        let correlator = Correlator::new(config.correlator, SmallRng::from_rng(&mut random));
        Self { watch, sink, correlator, config, random, stats: Arc::default() }
    }

    /// What became of the Events; may be kept while it runs.
    pub fn stats(&self) -> Arc<Stats> {
        self.stats.clone()
    }

    /// Records until the broadcaster is gone or shut down and the queue empty. Cancelled, it returns at once, also in the
    /// middle of a request.
    pub async fn run(mut self, token: CancellationToken) {
        let recording = async {
            let closing = self.watch.closing();
            while let Some(event) = self.watch.next().await {
                self.record(&event, &closing).await;
            }
        };
        token.run_until_cancelled(recording).await;
    }

    /// Writes an Event, if it is to be written, and tries again where that makes sense (ER-05, ER-06). Once `closing` there
    /// is only one try.
    pub(crate) async fn record(&mut self, event: &Event, closing: &CancellationToken) {
        let Some(correlated) = self.correlator.correlate(event) else {
            self.stats.filtered.fetch_add(1, Ordering::Relaxed);
            tracing::debug!(reason = event.reason, "dropped an Event: too many for one object");
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
                // Not everybody at the same moment when the API server comes back.
                wait = wait.mul_f64(self.random.random());
            }
            let may_retry = error.is_retried() && tries < self.config.tries;
            if !may_retry || closing.run_until_cancelled(tokio::time::sleep(wait)).await.is_none() {
                self.stats.abandoned.fetch_add(1, Ordering::Relaxed);
                tracing::warn!(reason = event.reason, tries, %error, "an Event was not recorded");
                return;
            }
        }
    }

    async fn write(&self, Correlated { event, patch }: &Correlated) -> Result<Event, SinkError> {
        if let Some(patch) = patch {
            match self.sink.patch(event, patch).await {
                // Events expire in the API server: then it is a new one.
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
    /// How many were written.
    pub fn recorded(&self) -> u64 {
        self.recorded.load(Ordering::Relaxed)
    }

    /// How many the spam filter dropped.
    pub fn filtered(&self) -> u64 {
        self.filtered.load(Ordering::Relaxed)
    }

    /// How many could not be written.
    pub fn abandoned(&self) -> u64 {
        self.abandoned.load(Ordering::Relaxed)
    }

    /// How many found no room behind the queue.
    pub fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests;

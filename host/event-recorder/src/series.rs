//! The recorder of `events.k8s.io/v1`: a repeated Event becomes a series, which is written at its second
//! Event and then periodically (EV-01 … EV-08).
//!
//! Up to eight writes run concurrently and 1,000 wait; further ones are dropped and counted (EV-06). The
//! future of [`SeriesRecording::run`] owns the series, so no lock is held during a request.

mod cache;
mod key;
mod writing;

use std::{
    collections::VecDeque,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use futures::{StreamExt, stream::FuturesUnordered};
use k8s_openapi::{
    api::{core::v1::ObjectReference, events::v1::Event},
    apimachinery::pkg::apis::meta::v1::MicroTime,
};
use rand::{SeedableRng, rngs::SmallRng};
use tokio::time::{Instant, interval_at};
use tokio_util::sync::CancellationToken;

use self::{
    cache::{Cache, Purpose},
    writing::{Outcome, Writing},
};
use crate::{
    EventType,
    broadcaster::{Broadcaster, Dropped, Watch},
    name::Names,
    recording::Stats,
    sink::EventSink,
};

/// The default queue capacity (EV-07).
pub const QUEUE: usize = 25;

/// The greatest length of a note in the API, in bytes.
const LONGEST_NOTE: usize = 1024;

/// Creates and emits Events of `events.k8s.io/v1`. Cheap to clone.
#[derive(Clone)]
pub struct SeriesRecorder {
    broadcaster: Broadcaster<Event>,
    controller: Arc<str>,
    instance: Arc<str>,
    names: Arc<Names>,
}

/// The content of an Event.
#[derive(Clone, Debug, PartialEq)]
pub struct Said<'a> {
    /// The type.
    pub event_type: EventType,
    /// The reason, one word.
    pub reason: &'a str,
    /// The action, one word.
    pub action: &'a str,
    /// The text for people. It is cut at the limit of the API.
    pub note: &'a str,
}

/// The configuration of a recording. The default is client-go's.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Config {
    /// The greatest number of concurrent writes.
    pub workers: usize,
    /// The greatest number of waiting writes.
    pub queue: usize,
    /// The number of remembered Events.
    pub remembered: usize,
    /// The greatest number of tries of a write.
    pub tries: u32,
    /// The time between two tries; a random part of up to a quarter is added.
    pub sleep: Duration,
    /// The period after which active series are written again.
    pub refresh: Duration,
    /// The idle time after which an Event is forgotten.
    pub finish: Duration,
    /// The seed of random numbers.
    pub seed: u64,
}

/// Writes the Events of one queue to one sink.
pub struct SeriesRecording<S> {
    watch: Watch<Event>,
    sink: S,
    config: Config,
    stats: Arc<Stats>,
}

/// A write to do.
struct Work {
    purpose: Purpose,
    event: Event,
    random: SmallRng,
}

// === impl SeriesRecorder ===

impl SeriesRecorder {
    /// Returns a recorder for a controller on a host.
    #[must_use]
    pub fn new(broadcaster: Broadcaster<Event>, controller: &str, host: &str) -> Self {
        let instance = format!("{controller}-{host}").into();
        Self { broadcaster, controller: controller.into(), instance, names: Arc::default() }
    }

    /// Emits an Event about an object and an optional related one. Never blocks.
    pub fn event(
        &self,
        regarding: ObjectReference,
        related: Option<ObjectReference>,
        said: &Said<'_>,
    ) -> Result<(), Dropped> {
        let (now, metadata) = self.names.metadata(&regarding);
        self.broadcaster.emit(Event {
            metadata,
            event_time: Some(MicroTime(now)),
            reporting_controller: Some(self.controller.to_string()),
            reporting_instance: Some(self.instance.to_string()),
            action: Some(said.action.to_owned()),
            reason: Some(said.reason.to_owned()),
            type_: Some(said.event_type.as_str().to_owned()),
            note: Some(said.note[..said.note.floor_char_boundary(LONGEST_NOTE)].to_owned()),
            regarding: Some(regarding),
            related,
            ..Event::default()
        })
    }
}

// === impl Config ===

impl Default for Config {
    fn default() -> Self {
        Self {
            workers: 8,
            queue: 1_000,
            remembered: 4_096,
            tries: 12,
            sleep: Duration::from_secs(10),
            refresh: Duration::from_secs(30 * 60),
            finish: Duration::from_secs(6 * 60),
            seed: rand::random(),
        }
    }
}

// === impl SeriesRecording ===

impl<S: EventSink<Event>> SeriesRecording<S> {
    /// Returns a recording; [`run`](Self::run) starts it.
    pub fn new(watch: Watch<Event>, sink: S, config: Config) -> Self {
        Self { watch, sink, config, stats: Arc::default() }
    }

    /// Returns the counts, which change while it runs.
    pub fn stats(&self) -> Arc<Stats> {
        self.stats.clone()
    }

    /// Records until the broadcaster is dropped or shut down and all writes have ended. When the token is
    /// cancelled it returns at once, also during requests.
    pub async fn run(self, token: CancellationToken) {
        token.run_until_cancelled(self.record_all()).await;
    }

    async fn record_all(self) {
        let Self { mut watch, sink, config, stats } = self;
        let writing = Writing { sink: &sink, config: &config, closing: watch.closing() };
        let mut random = SmallRng::seed_from_u64(config.seed);
        let mut cache = Cache::new(config.remembered);
        let mut waiting: VecDeque<Work> = VecDeque::new();
        let mut under_way = FuturesUnordered::new();
        let mut watching = true;
        let now = Instant::now();
        let mut refresh = interval_at(now + config.refresh, config.refresh);
        let mut finish = interval_at(now + config.finish, config.finish);
        while watching || !waiting.is_empty() || !under_way.is_empty() {
            let room = config.workers.max(1).saturating_sub(under_way.len());
            for work in waiting.drain(..room.min(waiting.len())) {
                under_way.push(writing.write(work));
            }
            let due = tokio::select! {
                biased;
                Some((purpose, outcome)) = under_way.next() => {
                    stats.count(outcome);
                    cache.wrote(purpose, outcome);
                    Vec::new()
                }
                event = watch.next(), if watching => match event {
                    Some(event) => cache.observe(&event).into_iter().collect(),
                    None => {
                        watching = false;
                        Vec::new()
                    }
                },
                _ = refresh.tick() => cache.series(),
                _ = finish.tick() => cache.take_idle(config.finish),
            };
            for (purpose, event) in due {
                if waiting.len() >= config.queue.max(1) {
                    stats.dropped.fetch_add(1, Ordering::Relaxed);
                    tracing::warn!(reason = event.reason, "dropped an Event: too many wait to be written");
                    cache.wrote(purpose, Outcome::Failed);
                    continue;
                }
                waiting.push_back(Work { purpose, event, random: SmallRng::from_rng(&mut random) });
            }
        }
    }
}

impl Stats {
    fn count(&self, outcome: Outcome) {
        match outcome {
            Outcome::Written => self.recorded.fetch_add(1, Ordering::Relaxed),
            Outcome::Refused | Outcome::Failed => self.abandoned.fetch_add(1, Ordering::Relaxed),
        };
    }
}

#[cfg(test)]
mod tests;

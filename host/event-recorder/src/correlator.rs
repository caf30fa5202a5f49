//! Correlates similar Events: counts repeated ones, aggregates similar ones, drops too many (client-go:
//! `EventCorrelator`).
//!
//! The order is aggregation, counting, spam filter (ER-04). A dropped Event is therefore counted, and the
//! next Event that passes has the right count. All state is bounded.

mod aggregator;
mod counter;
mod spam;
mod text_hash;

use std::{num::NonZeroUsize, time::Duration};

use k8s_openapi::api::core::v1::{Event, ObjectReference};
use rand::rngs::SmallRng;
use serde_json::Value;

#[cfg(test)]
pub(crate) use self::aggregator::{aggregate_by_reason, combined_message};
use self::{aggregator::Aggregator, counter::Counter, spam::SpamFilter};

/// The configuration of a correlator. A value of 0 means client-go's default (ES-02).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Config {
    /// The number of keys per cache: 4,096.
    pub lru_cache_size: usize,
    /// The burst of Events per source and object: 25.
    pub burst: u32,
    /// The rate after the burst: one in 300 seconds.
    pub per_second: f64,
    /// The number of different messages from which similar Events are aggregated: 10.
    pub max_events: usize,
    /// The time after which an Event is no longer similar to the last one: 600 seconds.
    pub max_interval: Duration,
}

/// The correlator of one recording (ER-08).
pub struct Correlator {
    aggregator: Aggregator,
    counter: Counter,
    spam: SpamFilter,
}

/// An Event to write.
#[derive(Clone, Debug, PartialEq)]
pub struct Correlated {
    /// The complete Event.
    pub event: Event,
    /// The changes, if the Event was written before.
    pub patch: Option<Value>,
}

/// The identity of an object, without its version and field path.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
struct About {
    kind: String,
    namespace: String,
    name: String,
    uid: String,
    api_version: String,
}

/// The source of an Event.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
struct Source {
    component: String,
    host: String,
}

// === impl Config ===

impl Config {
    fn with_defaults(self) -> Self {
        fn or<T: Default + PartialEq>(value: T, default: T) -> T {
            if value == T::default() { default } else { value }
        }
        Self {
            lru_cache_size: or(self.lru_cache_size, 4_096),
            burst: or(self.burst, 25),
            per_second: or(self.per_second, 1.0 / 300.0),
            max_events: or(self.max_events, 10),
            max_interval: or(self.max_interval, Duration::from_secs(600)),
        }
    }

    fn cache_size(&self) -> NonZeroUsize {
        NonZeroUsize::new(self.lru_cache_size).unwrap_or(NonZeroUsize::MIN)
    }
}

// === impl Correlator ===

impl Correlator {
    /// Returns a correlator without Events.
    #[must_use]
    pub fn new(config: Config, random: SmallRng) -> Self {
        let config = config.with_defaults();
        Self {
            aggregator: Aggregator::new(&config, random),
            counter: Counter::new(&config),
            spam: SpamFilter::new(&config),
        }
    }

    /// Returns the Event to write; none if the spam filter drops it.
    pub fn correlate(&mut self, event: &Event) -> Option<Correlated> {
        let (event, key) = self.aggregator.aggregate(event);
        let correlated = self.counter.observe(event, key);
        self.spam.passes(&correlated.event).then_some(correlated)
    }

    /// Records the stored form of an Event (ER-07).
    pub fn update(&mut self, stored: &Event) {
        self.counter.update(stored);
    }
}

// === impl About ===

impl About {
    fn of(reference: &ObjectReference) -> Self {
        let text = |field: &Option<String>| field.clone().unwrap_or_default();
        Self {
            kind: text(&reference.kind),
            namespace: text(&reference.namespace),
            name: text(&reference.name),
            uid: text(&reference.uid),
            api_version: text(&reference.api_version),
        }
    }
}

// === impl Source ===

impl Source {
    fn of(event: &Event) -> Self {
        let source = event.source.as_ref();
        let text = |field: Option<&String>| field.cloned().unwrap_or_default();
        Self {
            component: text(source.and_then(|it| it.component.as_ref())),
            host: text(source.and_then(|it| it.host.as_ref())),
        }
    }
}

#[cfg(test)]
mod tests;

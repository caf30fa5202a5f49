//! What becomes of an Event that is like others: it is counted up, put together with similar ones, or dropped.
//!
//! In this order (ER-04): aggregation, counting, spam filter. So one that is dropped was counted all the same, and the next
//! that passes has the right count. All state is bounded.

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

/// How much likeness is remembered, and how much is too much. What is 0 means the default, which is client-go's (ES-02).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Config {
    /// How many keys each cache has: 4,096.
    pub lru_cache_size: usize,
    /// How many Events about one object may come at once: 25.
    pub burst: u32,
    /// How many come after that: one in 300 seconds.
    pub per_second: f64,
    /// With how many different messages similar Events become one: 10.
    pub max_events: usize,
    /// For how long after the last one an Event is similar to it: 600 seconds.
    pub max_interval: Duration,
}

/// The state of one recording (ER-08).
pub struct Correlator {
    aggregator: Aggregator,
    counter: Counter,
    spam: SpamFilter,
}

/// An Event that is to be written.
#[derive(Clone, Debug, PartialEq)]
pub struct Correlated {
    /// The whole of it.
    pub event: Event,
    /// What has changed, if it was written before.
    pub patch: Option<Value>,
}

/// An object, but for the version of it and the part of it.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
struct About {
    kind: String,
    namespace: String,
    name: String,
    uid: String,
    api_version: String,
}

/// Who says something.
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
    /// Makes one that remembers nothing.
    #[must_use]
    pub fn new(config: Config, random: SmallRng) -> Self {
        let config = config.with_defaults();
        Self {
            aggregator: Aggregator::new(&config, random),
            counter: Counter::new(&config),
            spam: SpamFilter::new(&config),
        }
    }

    /// Decides what becomes of an Event. None: it is dropped, there are too many.
    pub fn correlate(&mut self, event: &Event) -> Option<Correlated> {
        let (event, key) = self.aggregator.aggregate(event);
        let correlated = self.counter.observe(event, key);
        self.spam.passes(&correlated.event).then_some(correlated)
    }

    /// Takes over how an Event was stored (ER-07).
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

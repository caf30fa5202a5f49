//! Aggregates Events that differ only in their message.

use std::time::Duration;

use k8s_openapi::{
    api::core::v1::Event,
    apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time},
    jiff::Timestamp,
};
use lru::LruCache;
use rand::{Rng, rngs::SmallRng};
use tokio::time::Instant;

use super::{About, Config, Source, counter::Key, text_hash::TextHash};
use crate::name::event_name;

/// The prefix of the message of an aggregate.
const PREFIX: &str = "(combined from similar events): ";

/// The common fields of similar Events (EA-01).
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub(crate) struct AggregateKey {
    source: Source,
    about: About,
    event_type: String,
    reason: String,
    reporting_component: String,
    reporting_instance: String,
}

pub(super) struct Aggregator {
    max_events: usize,
    max_interval: Duration,
    similar: LruCache<AggregateKey, Similar>,
    random: SmallRng,
}

/// The different messages of similar Events, and the time of the last one.
struct Similar {
    /// Without duplicates; at most `max_events`.
    messages: Vec<TextHash>,
    last: Instant,
}

/// Returns the common fields of similar Events, and the message of this one.
pub(crate) fn aggregate_by_reason(event: &Event) -> (AggregateKey, String) {
    let text = |field: &Option<String>| field.clone().unwrap_or_default();
    let key = AggregateKey {
        source: Source::of(event),
        about: About::of(&event.involved_object),
        event_type: text(&event.type_),
        reason: text(&event.reason),
        reporting_component: text(&event.reporting_component),
        reporting_instance: text(&event.reporting_instance),
    };
    (key, text(&event.message))
}

/// Returns the message of an aggregate.
pub(crate) fn combined_message(event: &Event) -> String {
    format!("{PREFIX}{}", event.message.as_deref().unwrap_or_default())
}

// === impl Aggregator ===

impl Aggregator {
    pub(super) fn new(config: &Config, random: SmallRng) -> Self {
        let Config { max_events, max_interval, .. } = *config;
        Self { max_events, max_interval, similar: LruCache::sparse(config.cache_size()), random }
    }

    /// Returns the Event or its aggregate, and the key for counting it (EA-02, EA-03).
    pub(super) fn aggregate(&mut self, event: &Event) -> (Event, Key) {
        let (key, message) = aggregate_by_reason(event);
        let now = Instant::now();
        let fresh = || Similar { messages: Vec::new(), last: now };
        let similar = self.similar.get_or_insert_mut(key.clone(), fresh);
        if now.saturating_duration_since(similar.last) > self.max_interval {
            similar.messages.clear();
        }
        similar.last = now;
        let message = TextHash::of(&message);
        if !similar.messages.contains(&message) {
            similar.messages.push(message);
        }
        if similar.messages.len() < self.max_events {
            return (event.clone(), Key::of(event));
        }
        // Bounds the set; a removed message counts as new when it comes again.
        let goes = self.random.random_range(0..similar.messages.len());
        similar.messages.swap_remove(goes);
        (combined(event), Key::Aggregate(Box::new(key)))
    }
}

fn combined(event: &Event) -> Event {
    let now = Timestamp::now();
    let about = event.involved_object.name.as_deref().unwrap_or_default();
    Event {
        metadata: ObjectMeta {
            name: Some(event_name(about, now.as_nanosecond())),
            namespace: event.metadata.namespace.clone(),
            ..ObjectMeta::default()
        },
        message: Some(combined_message(event)),
        count: Some(1),
        first_timestamp: Some(Time(now)),
        last_timestamp: Some(Time(now)),
        ..event.clone()
    }
}

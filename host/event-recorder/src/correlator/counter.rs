//! Counts repeated Events.

use k8s_openapi::{api::core::v1::Event, apimachinery::pkg::apis::meta::v1::Time};
use lru::LruCache;
use serde_json::json;

use super::{About, Config, Correlated, Source, aggregator::AggregateKey, text_hash::TextHash};

/// The key for counting Events (EA-04).
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub(super) enum Key {
    Aggregate(Box<AggregateKey>),
    Event(Box<EventKey>),
}

/// All fields of the Event except its source.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub(super) struct EventKey {
    source: Source,
    about: About,
    field_path: String,
    event_type: String,
    reason: String,
    message: TextHash,
}

pub(super) struct Counter {
    observed: LruCache<Key, Observed>,
}

struct Observed {
    name: Option<String>,
    resource_version: Option<String>,
    count: i32,
    first: Option<Time>,
}

// === impl Key ===

impl Key {
    pub(super) fn of(event: &Event) -> Self {
        let text = |field: &Option<String>| field.clone().unwrap_or_default();
        Self::Event(Box::new(EventKey {
            source: Source::of(event),
            about: About::of(&event.involved_object),
            field_path: text(&event.involved_object.field_path),
            event_type: text(&event.type_),
            reason: text(&event.reason),
            message: TextHash::of(event.message.as_deref().unwrap_or_default()),
        }))
    }
}

// === impl Counter ===

impl Counter {
    pub(super) fn new(config: &Config) -> Self {
        Self { observed: LruCache::sparse(config.cache_size()) }
    }

    /// Counts an Event. A repeated Event gets the name, resourceVersion and first timestamp of the first one.
    pub(super) fn observe(&mut self, mut event: Event, key: Key) -> Correlated {
        let mut patch = None;
        if let Some(known) = self.observed.get(&key).filter(|it| it.count > 0) {
            event.metadata.name.clone_from(&known.name);
            event.metadata.resource_version.clone_from(&known.resource_version);
            event.first_timestamp.clone_from(&known.first);
            let count = known.count.saturating_add(1);
            event.count = Some(count);
            patch = Some(json!({
                "count": count,
                "lastTimestamp": event.last_timestamp,
                "message": event.message,
            }));
        }
        self.observed.put(key, Observed::of(&event));
        Correlated { event, patch }
    }

    pub(super) fn update(&mut self, stored: &Event) {
        self.observed.put(Key::of(stored), Observed::of(stored));
    }
}

// === impl Observed ===

impl Observed {
    fn of(event: &Event) -> Self {
        Self {
            name: event.metadata.name.clone(),
            resource_version: event.metadata.resource_version.clone(),
            count: event.count.unwrap_or_default(),
            first: event.first_timestamp.clone(),
        }
    }
}

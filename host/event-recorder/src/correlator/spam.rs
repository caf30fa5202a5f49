//! The spam filter: limits the Events of one type from one source about one object.

use std::time::Duration;

use k8s_openapi::api::core::v1::Event;
use lru::LruCache;
use oarlock_flow_control::TokenBucket;

use super::{About, Config, Source};

/// A token bucket for each source, object and type: many Warnings do not suppress Normal Events (ES-01).
pub(super) struct SpamFilter {
    per_second: f64,
    burst: u32,
    buckets: LruCache<(Source, About, String), TokenBucket>,
}

// === impl SpamFilter ===

impl SpamFilter {
    pub(super) fn new(config: &Config) -> Self {
        let Config { per_second, burst, .. } = *config;
        Self { per_second, burst, buckets: LruCache::sparse(config.cache_size()) }
    }

    pub(super) fn passes(&mut self, event: &Event) -> bool {
        let event_type = event.type_.clone().unwrap_or_default();
        let key = (Source::of(event), About::of(&event.involved_object), event_type);
        let full = || TokenBucket::per_second(self.per_second, self.burst);
        self.buckets.get_or_insert(key, full).reserve(Duration::ZERO).is_ok()
    }
}

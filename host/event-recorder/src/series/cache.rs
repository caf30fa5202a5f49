//! The remembered Events of the series recorder.

use std::{num::NonZeroUsize, time::Duration};

use k8s_openapi::{
    api::events::v1::{Event, EventSeries},
    apimachinery::pkg::apis::meta::v1::MicroTime,
    jiff::Timestamp,
};
use lru::LruCache;
use tokio::time::Instant;

use super::{key::Key, writing::Outcome};

/// Bounded: the least recently seen Event is forgotten first.
pub(super) struct Cache {
    entries: LruCache<Key, SeriesEntry>,
}

/// The reason for a write.
pub(super) enum Purpose {
    /// A new Event or a new series.
    New,
    /// A periodic write of an active series, so that it does not expire in the API server.
    Refresh,
    /// The last write of an idle series. It is forgotten afterwards if it has not changed.
    Finish(Box<Key>, Instant),
}

struct SeriesEntry {
    event: Event,
    last: Instant,
}

// === impl Cache ===

impl Cache {
    pub(super) fn new(remembered: usize) -> Self {
        Self { entries: LruCache::sparse(NonZeroUsize::new(remembered).unwrap_or(NonZeroUsize::MIN)) }
    }

    /// Returns the write for an Event: the first one, and the second one as the start of a series (EV-02).
    pub(super) fn observe(&mut self, event: &Event) -> Option<(Purpose, Event)> {
        let key = Key::of(event);
        let now = Instant::now();
        let Some(known) = self.entries.get_mut(&key) else {
            self.entries.put(key, SeriesEntry { event: event.clone(), last: now });
            return Some((Purpose::New, event.clone()));
        };
        known.last = now;
        let last_observed_time = MicroTime(Timestamp::now());
        if let Some(series) = &mut known.event.series {
            series.count = series.count.saturating_add(1);
            series.last_observed_time = last_observed_time;
            return None;
        }
        known.event.series = Some(EventSeries { count: 2, last_observed_time });
        Some((Purpose::New, known.event.clone()))
    }

    /// Returns all series (EV-03).
    pub(super) fn series(&self) -> Vec<(Purpose, Event)> {
        let entries = self.entries.iter().map(|(_, entry)| entry);
        let series = entries.filter(|entry| entry.event.series.is_some());
        series.map(|entry| (Purpose::Refresh, entry.event.clone())).collect()
    }

    /// Forgets idle single Events; returns the idle series.
    pub(super) fn take_idle(&mut self, idle: Duration) -> Vec<(Purpose, Event)> {
        let old = self.entries.iter().filter(|(_, entry)| entry.last.elapsed() > idle);
        let (series, singles): (Vec<_>, Vec<_>) = old
            .map(|(key, entry)| (key.clone(), entry.last, entry.event.clone()))
            .partition(|(_, _, event)| event.series.is_some());
        for (key, _, _) in singles {
            self.entries.pop(&key);
        }
        let finish = |(key, last, event)| (Purpose::Finish(Box::new(key), last), event);
        series.into_iter().map(finish).collect()
    }

    /// Records the end of a write. Forgets a finished series, unless it changed meanwhile or must be written
    /// again.
    pub(super) fn wrote(&mut self, purpose: Purpose, outcome: Outcome) {
        if let Purpose::Finish(key, last) = purpose
            && outcome != Outcome::Failed
            && self.entries.peek(&key).is_some_and(|entry| entry.last == last)
        {
            self.entries.pop(&key);
        }
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }
}

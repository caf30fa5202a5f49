//! Collects the initial events of a watch, and warns if the bookmark that ends them is late.

use std::pin::pin;
use std::time::Duration;

use hashbrown::hash_map::Entry;
use tokio::time::{Instant, Interval, MissedTickBehavior};

use super::undecodable::UndecodableObjects;
use crate::names::{KeyMap, ObjectKey};
use crate::object::Object;

/// The time between two warnings of a late bookmark.
const WARNING_PERIOD: Duration = Duration::from_secs(10);

/// The objects of the initial events so far.
#[derive(Debug, Default)]
pub(super) struct InitialEvents {
    pub(super) objects: InitialObjects,
    pub(super) undecodable: UndecodableObjects,
}

/// The temporary store of the initial events (WL-02): each object once, mostly in the order of the events.
///
/// It exists beside the cache while the events arrive. As long as the objects arrive in the order of a list,
/// each takes one pointer; after the first one out of order, each also takes a map entry.
#[derive(Debug, Default)]
pub(super) struct InitialObjects {
    objects: Vec<Object>,
    /// The index in `objects` by key. None while all objects arrived in the order of a list.
    indices: Option<KeyMap<usize>>,
}

/// Warns while the bookmark that ends the initial events is late (WL-08).
#[derive(Debug)]
pub(super) struct LateBookmark {
    interval: Interval,
    begun_at: Instant,
}

// === impl InitialObjects ===

impl InitialObjects {
    /// Adds an object, or replaces the one with its key.
    pub(super) fn put(&mut self, object: Object) {
        let is_before = |last: &Object| last.key().cmp_in_list(object.key()).is_lt();
        if self.indices.is_none() && self.objects.last().is_none_or(is_before) {
            self.objects.push(object);
            return;
        }
        let n_objects = self.objects.len();
        match self.indices().entry(object.key().clone()) {
            Entry::Occupied(idx) => {
                let idx = *idx.get();
                self.objects[idx] = object;
            }
            Entry::Vacant(idx) => {
                idx.insert(n_objects);
                self.objects.push(object);
            }
        }
    }

    /// Removes the object with this key, if any. The last object takes its index.
    pub(super) fn remove(&mut self, key: &ObjectKey) {
        let Some(idx) = self.indices().remove(key) else { return };
        self.objects.swap_remove(idx);
        if let Some(moved) = self.objects.get(idx) {
            let moved = moved.key().clone();
            self.indices().insert(moved, idx);
        }
    }

    pub(super) fn into_objects(self) -> Vec<Object> {
        self.objects
    }

    fn indices(&mut self) -> &mut KeyMap<usize> {
        self.indices.get_or_insert_with(|| {
            self.objects.iter().enumerate().map(|(idx, object)| (object.key().clone(), idx)).collect()
        })
    }
}

// === impl LateBookmark ===

impl LateBookmark {
    /// Starts the timer of the warnings.
    pub(super) fn new() -> Self {
        let now = Instant::now();
        let mut interval = tokio::time::interval_at(now + WARNING_PERIOD, WARNING_PERIOD);
        interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self { interval, begun_at: now }
    }

    /// Waits for the future, and logs a warning each period until it is ready.
    pub(super) async fn warn_until<T>(
        &mut self,
        next: impl Future<Output = T>,
        last_event_at: impl Fn() -> Option<Instant>,
    ) -> T {
        let mut next = pin!(next);
        loop {
            tokio::select! {
                biased;
                next = &mut next => return next,
                _ = self.interval.tick() => tracing::warn!("{}", self.warning(last_event_at())),
            }
        }
    }

    fn warning(&self, last_event_at: Option<Instant>) -> String {
        let lateness = match last_event_at {
            None => format!("no events received for {}s", self.begun_at.elapsed().as_secs()),
            Some(at) => format!("received last event {}s ago", at.elapsed().as_secs()),
        };
        format!("the bookmark that ends the initial events has not arrived yet: {lateness}")
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;
    use crate::names::TypeMeta;
    use crate::testing::Draft;

    proptest! {
        #[test]
        fn the_initial_objects_equal_those_of_a_map_wl_02(
            steps in prop::collection::vec((0..6_u8, any::<bool>()), 0..40),
        ) {
            let mut initial = InitialObjects::default();
            let mut model = BTreeMap::new();
            for (version, (name, is_put)) in steps.into_iter().enumerate() {
                let key = format!("x/{name}");
                let object = Draft::new(&key).at(&TypeMeta::new("v1", "Pod"), "u", &version.to_string());
                if is_put {
                    model.insert(object.key().clone(), version.to_string());
                    initial.put(object);
                } else {
                    model.remove(object.key());
                    initial.remove(object.key());
                }
            }
            let objects = initial.into_objects();
            prop_assert_eq!(objects.len(), model.len());
            let found: BTreeMap<_, _> = objects
                .iter()
                .map(|object| (object.key().clone(), object.resource_version().to_owned()))
                .collect();
            prop_assert_eq!(found, model);
        }
    }

    /// Upstream's variant without warnings does not exist here.
    // Conformance: 18.2
    #[tokio::test(start_paused = true)]
    async fn a_warning_says_how_long_ago_the_last_event_was_wl_08() {
        let mut late = LateBookmark::new();
        let second = Duration::from_secs(1);
        for elapsed in ["1s", "2s"] {
            tokio::time::advance(second).await;
            assert!(late.warning(None).ends_with(&format!("no events received for {elapsed}")));
        }
        let last_event_at = Some(Instant::now());
        for elapsed in ["1s", "2s"] {
            tokio::time::advance(second).await;
            assert!(late.warning(last_event_at).ends_with(&format!("received last event {elapsed} ago")));
        }
        // A bookmark that is ready is returned before a warning that is due.
        tokio::time::advance(WARNING_PERIOD).await;
        assert_eq!(late.warn_until(async { "the bookmark" }, || None).await, "the bookmark");
    }
}

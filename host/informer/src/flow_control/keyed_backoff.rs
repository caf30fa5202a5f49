//! A back-off for each of many ids, forgotten when an id has been quiet for long.

use std::{collections::HashMap, hash::Hash, time::Duration};

use parking_lot::Mutex;
use rand::{Rng, rngs::SmallRng};
use tokio::time::Instant;

use crate::clock;

/// The shape of a [`KeyedBackoff`].
#[derive(Clone, Debug, PartialEq)]
pub struct KeyedBackoffConfig {
    /// The first delay.
    pub initial: Duration,
    /// The greatest. Not of the first one, whose random part is added beyond it (FC-01).
    pub max: Duration,
    /// How much is added at random at most, as a part of the delay before.
    pub jitter: f64,
    /// An id that was not updated for longer than this before an event is new to us. `None`: twice `max` (FC-02).
    pub expire_after: Option<Duration>,
}

/// Delays that double with each failure of an id (FC-01 … FC-03). Nobody waits in here: it is asked whether an id still
/// should.
#[derive(Debug)]
pub struct KeyedBackoff<K> {
    config: KeyedBackoffConfig,
    state: Mutex<State<K>>,
}

#[derive(Debug)]
struct State<K> {
    entries: HashMap<K, Entry>,
    random: SmallRng,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    delay: Duration,
    updated: Instant,
}

// === impl KeyedBackoffConfig ===

impl KeyedBackoffConfig {
    /// Doubles from `initial` to `max` without a random part.
    #[must_use]
    pub fn new(initial: Duration, max: Duration) -> Self {
        Self { initial, max, jitter: 0.0, expire_after: None }
    }

    fn has_expired(&self, entry: &Entry, at: Instant) -> bool {
        let after = self.expire_after.unwrap_or_else(|| self.max.saturating_mul(2));
        at.saturating_duration_since(entry.updated) > after
    }
}

// === impl KeyedBackoff ===

impl<K: Eq + Hash> KeyedBackoff<K> {
    /// Makes one that knows no id.
    pub fn new(config: KeyedBackoffConfig, random: SmallRng) -> Self {
        Self { config, state: Mutex::new(State { entries: HashMap::new(), random }) }
    }

    /// Returns an id's delay; none for an id that is not known.
    pub fn get(&self, id: &K) -> Duration {
        self.state.lock().entries.get(id).map_or(Duration::ZERO, |entry| entry.delay)
    }

    /// Notes a failure that happened at `event_time`: the id's delay doubles, or is the first one if the id is new or
    /// has been quiet for long before the event.
    pub fn next(&self, id: K, event_time: Instant) {
        let mut state = self.state.lock();
        let State { entries, random } = &mut *state;
        let known = entries.get(&id).filter(|entry| !self.config.has_expired(entry, event_time));
        let before = known.map_or(self.config.initial, |entry| entry.delay);
        let jitter = clock::scaled(before, self.config.jitter * random.random::<f64>());
        let delay = match known {
            Some(_) => before.saturating_mul(2).saturating_add(jitter).min(self.config.max),
            None => before.saturating_add(jitter),
        };
        entries.insert(id, Entry { delay, updated: Instant::now() });
    }

    /// Forgets an id: it succeeded.
    pub fn reset(&self, id: &K) {
        self.state.lock().entries.remove(id);
    }

    /// Whether less time than the id's delay has passed since an event.
    pub fn is_in_backoff_since(&self, id: &K, event_time: Instant) -> bool {
        self.holds(id, event_time, |entry| event_time.elapsed() < entry.delay)
    }

    /// Whether an event came sooner after the id's last failure than its delay allows.
    pub fn is_in_backoff_since_update(&self, id: &K, event_time: Instant) -> bool {
        self.holds(id, event_time, |entry| event_time.saturating_duration_since(entry.updated) < entry.delay)
    }

    /// Forgets the ids that have been quiet for long. Nothing calls this by itself.
    pub fn gc(&self) {
        let now = Instant::now();
        let mut state = self.state.lock();
        state.entries.retain(|_, entry| !self.config.has_expired(entry, now));
        if state.entries.is_empty() {
            state.entries.shrink_to(64);
        }
    }

    /// How many ids are known.
    pub fn n_ids(&self) -> usize {
        self.state.lock().entries.len()
    }

    fn holds(&self, id: &K, event_time: Instant, condition: impl FnOnce(&Entry) -> bool) -> bool {
        let state = self.state.lock();
        let entry = state.entries.get(id).filter(|entry| !self.config.has_expired(entry, event_time));
        entry.is_some_and(condition)
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;

    use super::*;

    fn secs(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn backoff(config: KeyedBackoffConfig) -> KeyedBackoff<&'static str> {
        KeyedBackoff::new(config, SmallRng::seed_from_u64(1))
    }

    fn of_1_to(max: u64) -> KeyedBackoff<&'static str> {
        backoff(KeyedBackoffConfig::new(secs(1), secs(max)))
    }

    #[tokio::test(start_paused = true)]
    async fn doubles_to_the_cap_fc_01() {
        let backoff = of_1_to(50);
        assert_eq!(backoff.get(&"a"), Duration::ZERO);
        for expected in [1, 2, 4, 8, 16, 32, 50, 50] {
            backoff.next("a", Instant::now());
            assert_eq!(backoff.get(&"a"), secs(expected));
            tokio::time::advance(Duration::from_millis(10)).await;
        }
        backoff.next("b", Instant::now());
        assert_eq!(backoff.get(&"b"), secs(1), "each id has its own");
        backoff.reset(&"a");
        assert_eq!(backoff.get(&"a"), Duration::ZERO);
    }

    #[tokio::test(start_paused = true)]
    async fn jitter_is_a_part_of_the_delay_before_and_not_capped_at_first_fc_01() {
        let config = KeyedBackoffConfig { jitter: 0.5, ..KeyedBackoffConfig::new(secs(10), secs(10)) };
        let backoff = backoff(config);
        for n in 0..100_u32 {
            backoff.reset(&"a");
            backoff.next("a", Instant::now());
            let first = backoff.get(&"a");
            assert!(secs(10) <= first && first < secs(15), "{first:?} at {n}");
            backoff.next("a", Instant::now());
            assert_eq!(backoff.get(&"a"), secs(10), "the cap holds from the second on");
        }
        let config = KeyedBackoffConfig { jitter: 0.5, ..KeyedBackoffConfig::new(secs(10), secs(1000)) };
        let backoff = super::tests::backoff(config);
        backoff.next("a", Instant::now());
        let first = backoff.get(&"a");
        backoff.next("a", Instant::now());
        let second = backoff.get(&"a");
        assert!(2 * first <= second && second < 2 * first + first.mul_f64(0.5), "{first:?}, {second:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn an_id_that_was_quiet_for_long_begins_anew_fc_02() {
        let backoff = of_1_to(4);
        let fail = || backoff.next("a", Instant::now());
        fail();
        fail();
        tokio::time::advance(secs(8)).await;
        fail();
        assert_eq!(backoff.get(&"a"), secs(4), "exactly twice the greatest delay is not yet too long");
        tokio::time::advance(secs(8) + Duration::from_nanos(1)).await;
        fail();
        assert_eq!(backoff.get(&"a"), secs(1));
    }

    #[tokio::test(start_paused = true)]
    async fn when_an_id_expires_may_be_chosen_fc_02() {
        let config =
            KeyedBackoffConfig { expire_after: Some(secs(3)), ..KeyedBackoffConfig::new(secs(1), secs(60)) };
        let backoff = backoff(config);
        backoff.next("a", Instant::now());
        tokio::time::advance(secs(3)).await;
        backoff.next("a", Instant::now());
        assert_eq!(backoff.get(&"a"), secs(2));
        tokio::time::advance(secs(4)).await;
        backoff.next("a", Instant::now());
        assert_eq!(backoff.get(&"a"), secs(1));
    }

    #[tokio::test(start_paused = true)]
    async fn gc_forgets_by_the_same_test_against_now_fc_02() {
        let backoff = of_1_to(5);
        backoff.next("old", Instant::now());
        tokio::time::advance(secs(10)).await;
        backoff.next("new", Instant::now());
        backoff.gc();
        assert_eq!(backoff.n_ids(), 2, "exactly twice the greatest delay");
        tokio::time::advance(Duration::from_nanos(1)).await;
        backoff.gc();
        assert_eq!((backoff.n_ids(), backoff.get(&"new")), (1, secs(1)));
    }

    #[tokio::test(start_paused = true)]
    async fn in_backoff_since_an_event_fc_03() {
        let backoff = of_1_to(60);
        let event = Instant::now();
        assert!(!backoff.is_in_backoff_since(&"a", event), "nothing is known of it");
        backoff.next("a", event);
        backoff.next("a", event);
        assert!(backoff.is_in_backoff_since(&"a", event));
        tokio::time::advance(Duration::from_millis(1999)).await;
        assert!(backoff.is_in_backoff_since(&"a", event));
        tokio::time::advance(Duration::from_millis(1)).await;
        assert!(!backoff.is_in_backoff_since(&"a", event));
    }

    #[tokio::test(start_paused = true)]
    async fn in_backoff_since_the_last_failure_fc_03() {
        let backoff = of_1_to(60);
        let failure = Instant::now();
        assert!(!backoff.is_in_backoff_since_update(&"a", failure));
        backoff.next("a", failure);
        backoff.next("a", failure);
        let at = |millis| failure + Duration::from_millis(millis);
        assert!(backoff.is_in_backoff_since_update(&"a", at(1999)));
        assert!(!backoff.is_in_backoff_since_update(&"a", at(2000)));
        assert!(!backoff.is_in_backoff_since_update(&"a", at(120_001)), "expired");
        backoff.reset(&"a");
        assert!(!backoff.is_in_backoff_since_update(&"a", at(1)));
    }
}

//! A back-off for each of many ids.

use std::{collections::HashMap, hash::Hash, time::Duration};

use parking_lot::Mutex;
use rand::rngs::SmallRng;
use tokio::time::Instant;

use crate::Backoff;

/// A delay for each id, which grows with each failure of the id (FC-01 … FC-03; client-go:
/// `flowcontrol.Backoff`).
///
/// It does not wait: a caller asks whether an id is in back-off.
#[derive(Debug)]
pub struct KeyedBackoff<K> {
    backoff: Backoff,
    expire_after: Duration,
    ids: Mutex<Ids<K>>,
}

#[derive(Debug)]
struct Ids<K> {
    failures: HashMap<K, Failure>,
    random: SmallRng,
}

/// The last failure of an id.
#[derive(Clone, Copy, Debug)]
struct Failure {
    delay: Duration,
    updated: Instant,
}

// === impl KeyedBackoff ===

impl<K: Eq + Hash> KeyedBackoff<K> {
    /// Returns a back-off without ids. Ids expire twice the cap after their last failure (FC-02).
    ///
    /// The random addition is a part of the delay that follows, and the cap holds for the sum. The first
    /// delay is not capped (FC-01).
    #[must_use]
    pub fn new(backoff: Backoff, random: SmallRng) -> Self {
        let expire_after = backoff.cap.saturating_mul(2);
        Self { backoff, expire_after, ids: Mutex::new(Ids { failures: HashMap::new(), random }) }
    }

    /// Changes the time after which an id expires: its next failure counts as its first.
    #[must_use]
    pub fn with_expiry(self, expire_after: Duration) -> Self {
        Self { expire_after, ..self }
    }

    /// Returns the delay of an id; zero for an unknown id.
    pub fn get(&self, id: &K) -> Duration {
        self.ids.lock().failures.get(id).map_or(Duration::ZERO, |failure| failure.delay)
    }

    /// Records a failure at `event_time`. The delay of the id grows, or is the initial one if the id is
    /// unknown or expired.
    pub fn next(&self, id: K, event_time: Instant) {
        let mut ids = self.ids.lock();
        let Ids { failures, random } = &mut *ids;
        let previous = failures.get(&id).filter(|failure| !self.has_expired(failure, event_time));
        let delay = match previous.map(|failure| failure.delay) {
            Some(previous) => {
                let addition = self.backoff.random_addition(previous, random);
                self.backoff.next(Some(previous)).saturating_add(addition).min(self.backoff.cap)
            }
            None => {
                let initial = self.backoff.next(None);
                initial.saturating_add(self.backoff.random_addition(initial, random))
            }
        };
        failures.insert(id, Failure { delay, updated: Instant::now() });
    }

    /// Forgets an id that has succeeded.
    pub fn reset(&self, id: &K) {
        self.ids.lock().failures.remove(id);
    }

    /// Returns true if the time since an event is shorter than the id's delay.
    pub fn is_in_backoff_since(&self, id: &K, event_time: Instant) -> bool {
        self.holds(id, event_time, |failure| event_time.elapsed() < failure.delay)
    }

    /// Returns true if the time from the id's last failure to an event is shorter than the id's delay.
    pub fn is_in_backoff_since_update(&self, id: &K, event_time: Instant) -> bool {
        self.holds(id, event_time, |failure| {
            event_time.saturating_duration_since(failure.updated) < failure.delay
        })
    }

    /// Forgets the expired ids. The caller calls it from time to time.
    pub fn gc(&self) {
        let now = Instant::now();
        let mut ids = self.ids.lock();
        ids.failures.retain(|_, failure| !self.has_expired(failure, now));
        if ids.failures.is_empty() {
            ids.failures.shrink_to(64);
        }
    }

    /// Returns the number of known ids.
    pub fn n_ids(&self) -> usize {
        self.ids.lock().failures.len()
    }

    fn holds(&self, id: &K, event_time: Instant, condition: impl FnOnce(&Failure) -> bool) -> bool {
        let ids = self.ids.lock();
        let failure = ids.failures.get(id).filter(|failure| !self.has_expired(failure, event_time));
        failure.is_some_and(condition)
    }

    fn has_expired(&self, failure: &Failure, at: Instant) -> bool {
        at.saturating_duration_since(failure.updated) > self.expire_after
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;

    use super::*;

    fn secs(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn keyed(backoff: Backoff) -> KeyedBackoff<&'static str> {
        KeyedBackoff::new(backoff, SmallRng::seed_from_u64(1))
    }

    fn from_1_to(cap: u64) -> KeyedBackoff<&'static str> {
        keyed(Backoff::doubling(secs(1), secs(cap)))
    }

    #[tokio::test(start_paused = true)]
    async fn the_delay_of_an_id_doubles_to_the_cap_fc_01() {
        let backoff = from_1_to(50);
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
    async fn jitter_is_a_part_of_the_previous_delay_and_the_first_is_not_capped_fc_01() {
        let backoff = keyed(Backoff { jitter: 0.5, ..Backoff::doubling(secs(10), secs(10)) });
        for n in 0..100_u32 {
            backoff.reset(&"a");
            backoff.next("a", Instant::now());
            let first = backoff.get(&"a");
            assert!(secs(10) <= first && first < secs(15), "{first:?} at {n}");
            backoff.next("a", Instant::now());
            assert_eq!(backoff.get(&"a"), secs(10), "the cap holds from the second delay on");
        }
        let backoff = keyed(Backoff { jitter: 0.5, ..Backoff::doubling(secs(10), secs(1000)) });
        backoff.next("a", Instant::now());
        let first = backoff.get(&"a");
        backoff.next("a", Instant::now());
        let second = backoff.get(&"a");
        assert!(2 * first <= second && second < 2 * first + first.mul_f64(0.5), "{first:?}, {second:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn an_expired_id_restarts_at_the_initial_delay_fc_02() {
        let backoff = from_1_to(4);
        let fail = || backoff.next("a", Instant::now());
        fail();
        fail();
        tokio::time::advance(secs(8)).await;
        fail();
        assert_eq!(backoff.get(&"a"), secs(4), "not expired at exactly twice the cap");
        tokio::time::advance(secs(8) + Duration::from_nanos(1)).await;
        fail();
        assert_eq!(backoff.get(&"a"), secs(1));
    }

    #[tokio::test(start_paused = true)]
    async fn the_expiry_of_ids_is_configurable_fc_02() {
        let backoff = from_1_to(60).with_expiry(secs(3));
        backoff.next("a", Instant::now());
        tokio::time::advance(secs(3)).await;
        backoff.next("a", Instant::now());
        assert_eq!(backoff.get(&"a"), secs(2));
        tokio::time::advance(secs(4)).await;
        backoff.next("a", Instant::now());
        assert_eq!(backoff.get(&"a"), secs(1));
    }

    #[tokio::test(start_paused = true)]
    async fn gc_forgets_expired_ids_fc_02() {
        let backoff = from_1_to(5);
        backoff.next("old", Instant::now());
        tokio::time::advance(secs(10)).await;
        backoff.next("new", Instant::now());
        backoff.gc();
        assert_eq!(backoff.n_ids(), 2, "not expired at exactly twice the cap");
        tokio::time::advance(Duration::from_nanos(1)).await;
        backoff.gc();
        assert_eq!((backoff.n_ids(), backoff.get(&"new")), (1, secs(1)));
    }

    #[tokio::test(start_paused = true)]
    async fn an_id_is_in_backoff_until_its_delay_after_the_event_fc_03() {
        let backoff = from_1_to(60);
        let event = Instant::now();
        assert!(!backoff.is_in_backoff_since(&"a", event), "unknown id");
        backoff.next("a", event);
        backoff.next("a", event);
        assert!(backoff.is_in_backoff_since(&"a", event));
        tokio::time::advance(Duration::from_millis(1999)).await;
        assert!(backoff.is_in_backoff_since(&"a", event));
        tokio::time::advance(Duration::from_millis(1)).await;
        assert!(!backoff.is_in_backoff_since(&"a", event));
    }

    #[tokio::test(start_paused = true)]
    async fn an_id_is_in_backoff_until_its_delay_after_its_last_failure_fc_03() {
        let backoff = from_1_to(60);
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

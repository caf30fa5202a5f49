//! How long a key that failed waits.

use std::collections::HashMap;
use std::hash::Hash;
use std::time::Duration;

use oarlock_flow_control::{Backoff, TokenBucket};

/// Decides how long a key waits before it is worked on again.
pub trait RateLimiter<K>: Send {
    /// Returns how long the key has to wait this time.
    fn when(&mut self, key: &K) -> Duration;
    /// The key succeeded or was given up: its failures do not count any more.
    fn forget(&mut self, key: &K);
    /// Returns how often the key has failed since it was last forgotten.
    fn n_requeues(&self, key: &K) -> u32;
}

/// Doubles each key's delay at each failure, from a base to a cap.
#[derive(Clone, Debug)]
pub struct Exponential<K> {
    backoff: Backoff,
    failures: HashMap<K, Failures>,
}

#[derive(Clone, Copy, Debug)]
struct Failures {
    n: u32,
    delay: Duration,
}

/// A short delay for a key's first failures, a long one for all others.
#[derive(Clone, Debug)]
pub struct FastSlow<K> {
    fast: Duration,
    slow: Duration,
    n_fast: u32,
    failures: HashMap<K, u32>,
}

/// A bucket of tokens that all keys share. Unlike client-go's, it never reserves beyond `max_delay`.
#[derive(Debug)]
pub struct Bucket {
    tokens: TokenBucket,
    max_delay: Duration,
}

/// The longest delay of several limiters, all of which are asked each time.
pub struct MaxOf<K>(Vec<Box<dyn RateLimiter<K>>>);

/// Another limiter's delays, but no longer than a cap.
pub struct MaxWait<L> {
    inner: L,
    cap: Duration,
}

/// Returns the usual limiter: per key 5 ms to 1000 s, together 10 a second after a burst of 100, which never adds more than a minute.
#[must_use]
pub fn default<K: Clone + Eq + Hash + Send + 'static>() -> Box<dyn RateLimiter<K>> {
    Box::new(MaxOf::new(vec![
        Box::new(Exponential::new(Duration::from_millis(5), Duration::from_secs(1000))),
        Box::new(Bucket::new(Duration::from_millis(100), 100, Duration::from_secs(60))),
    ]))
}

// === impl Exponential ===

impl<K> Exponential<K> {
    /// Makes a limiter whose first delay is `base`.
    #[must_use]
    pub fn new(base: Duration, cap: Duration) -> Self {
        Self { backoff: Backoff::doubling(base.min(cap), cap), failures: HashMap::new() }
    }
}

impl<K: Clone + Eq + Hash + Send> RateLimiter<K> for Exponential<K> {
    fn when(&mut self, key: &K) -> Duration {
        if let Some(Failures { n, delay }) = self.failures.get_mut(key) {
            (*n, *delay) = (n.saturating_add(1), self.backoff.next(Some(*delay)));
            return *delay;
        }
        let delay = self.backoff.next(None);
        self.failures.insert(key.clone(), Failures { n: 1, delay });
        delay
    }

    fn forget(&mut self, key: &K) {
        forget(&mut self.failures, key);
    }

    fn n_requeues(&self, key: &K) -> u32 {
        self.failures.get(key).map_or(0, |failures| failures.n)
    }
}

// === impl FastSlow ===

impl<K> FastSlow<K> {
    /// Makes a limiter whose first `n_fast` delays are `fast`.
    #[must_use]
    pub fn new(fast: Duration, slow: Duration, n_fast: u32) -> Self {
        Self { fast, slow, n_fast, failures: HashMap::new() }
    }
}

impl<K: Clone + Eq + Hash + Send> RateLimiter<K> for FastSlow<K> {
    fn when(&mut self, key: &K) -> Duration {
        if count(&mut self.failures, key) < self.n_fast { self.fast } else { self.slow }
    }

    fn forget(&mut self, key: &K) {
        forget(&mut self.failures, key);
    }

    fn n_requeues(&self, key: &K) -> u32 {
        self.failures.get(key).copied().unwrap_or_default()
    }
}

// === impl Bucket ===

impl Bucket {
    /// Makes a full bucket of `burst` tokens. No delay is longer than `max_delay`.
    #[must_use]
    pub fn new(per_token: Duration, burst: u32, max_delay: Duration) -> Self {
        Self { tokens: TokenBucket::new(per_token, burst), max_delay }
    }
}

impl<K> RateLimiter<K> for Bucket {
    fn when(&mut self, _key: &K) -> Duration {
        self.tokens.reserve(self.max_delay).unwrap_or(self.max_delay)
    }

    fn forget(&mut self, _key: &K) {}

    fn n_requeues(&self, _key: &K) -> u32 {
        0
    }
}

// === impl MaxOf ===

impl<K> MaxOf<K> {
    /// Makes a limiter of several.
    #[must_use]
    pub fn new(limiters: Vec<Box<dyn RateLimiter<K>>>) -> Self {
        Self(limiters)
    }
}

impl<K> RateLimiter<K> for MaxOf<K> {
    fn when(&mut self, key: &K) -> Duration {
        self.0.iter_mut().map(|limiter| limiter.when(key)).max().unwrap_or_default()
    }

    fn forget(&mut self, key: &K) {
        self.0.iter_mut().for_each(|limiter| limiter.forget(key));
    }

    fn n_requeues(&self, key: &K) -> u32 {
        self.0.iter().map(|limiter| limiter.n_requeues(key)).max().unwrap_or_default()
    }
}

// === impl MaxWait ===

impl<L> MaxWait<L> {
    /// Caps another limiter.
    #[must_use]
    pub fn new(inner: L, cap: Duration) -> Self {
        Self { inner, cap }
    }
}

impl<K, L: RateLimiter<K>> RateLimiter<K> for MaxWait<L> {
    fn when(&mut self, key: &K) -> Duration {
        self.inner.when(key).min(self.cap)
    }

    fn forget(&mut self, key: &K) {
        self.inner.forget(key);
    }

    fn n_requeues(&self, key: &K) -> u32 {
        self.inner.n_requeues(key)
    }
}

/// Counts a failure; returns how many there were before.
fn count<K: Clone + Eq + Hash>(failures: &mut HashMap<K, u32>, key: &K) -> u32 {
    if let Some(n_failures) = failures.get_mut(key) {
        let before = *n_failures;
        *n_failures = before.saturating_add(1);
        return before;
    }
    failures.insert(key.clone(), 1);
    0
}

fn forget<K: Eq + Hash, F>(failures: &mut HashMap<K, F>, key: &K) {
    failures.remove(key);
    if failures.is_empty() {
        failures.shrink_to(64);
    }
}

#[cfg(test)]
mod tests;

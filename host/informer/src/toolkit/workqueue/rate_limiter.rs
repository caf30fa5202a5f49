//! The delays of failed keys (client-go: `workqueue.RateLimiter`).

use std::collections::HashMap;
use std::hash::Hash;
use std::time::Duration;

use oarlock_flow_control::{Backoff, TokenBucket};

/// Computes the delay before a key is processed again.
pub trait RateLimiter<K>: Send {
    /// Records a failure of the key and returns its delay.
    fn when(&mut self, key: &K) -> Duration;
    /// Forgets the failures of a key that succeeded or is no longer retried.
    fn forget(&mut self, key: &K);
    /// Returns the number of failures of a key since it was forgotten.
    fn n_requeues(&self, key: &K) -> u32;
}

/// Doubles the delay of a key at each failure, up to a cap (client-go: `ItemExponentialFailureRateLimiter`).
#[derive(Clone, Debug)]
pub struct Exponential<K> {
    backoff: Backoff,
    failures: HashMap<K, KeyFailures>,
}

#[derive(Clone, Copy, Debug)]
struct KeyFailures {
    n: u32,
    delay: Duration,
}

/// A short delay for the first failures of a key, a long one for all others (client-go:
/// `ItemFastSlowRateLimiter`).
#[derive(Clone, Debug)]
pub struct FastSlow<K> {
    fast: Duration,
    slow: Duration,
    n_fast: u32,
    failures: HashMap<K, u32>,
}

/// A token bucket that all keys share (client-go: `BucketRateLimiter`). Unlike client-go's, it reserves no
/// token beyond `max_delay`.
#[derive(Debug)]
pub struct Bucket {
    tokens: TokenBucket,
    max_delay: Duration,
}

/// The longest delay of several limiters, which all record each failure (client-go: `MaxOfRateLimiter`).
pub struct MaxOf<K>(Vec<Box<dyn RateLimiter<K>>>);

/// The delays of another limiter up to a cap (client-go: `WithMaxWaitRateLimiter`).
pub struct MaxWait<L> {
    inner: L,
    cap: Duration,
}

/// Returns the default limiter: per key 5 ms to 1000 s, and for all keys 10 per second after a burst of 100,
/// which adds at most one minute (client-go: `DefaultControllerRateLimiter`).
#[must_use]
pub fn default<K: Clone + Eq + Hash + Send + 'static>() -> Box<dyn RateLimiter<K>> {
    Box::new(MaxOf::new(vec![
        Box::new(Exponential::new(Duration::from_millis(5), Duration::from_secs(1000))),
        Box::new(Bucket::new(Duration::from_millis(100), 100, Duration::from_secs(60))),
    ]))
}

// === impl Exponential ===

impl<K> Exponential<K> {
    /// Returns a limiter with the first delay `base`.
    #[must_use]
    pub fn new(base: Duration, cap: Duration) -> Self {
        Self { backoff: Backoff::doubling(base.min(cap), cap), failures: HashMap::new() }
    }
}

impl<K: Clone + Eq + Hash + Send> RateLimiter<K> for Exponential<K> {
    fn when(&mut self, key: &K) -> Duration {
        if let Some(KeyFailures { n, delay }) = self.failures.get_mut(key) {
            (*n, *delay) = (n.saturating_add(1), self.backoff.next(Some(*delay)));
            return *delay;
        }
        let delay = self.backoff.next(None);
        self.failures.insert(key.clone(), KeyFailures { n: 1, delay });
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
    /// Returns a limiter with the delay `fast` for the first `n_fast` failures.
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
    /// Returns a full bucket of `burst` tokens. No delay exceeds `max_delay`.
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
    /// Combines limiters.
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
    /// Caps the delays of a limiter.
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

/// Counts a failure; returns the number of failures before it.
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

//! A token bucket. It starts full, gains tokens at a steady rate, and lets callers reserve future tokens.

use std::time::Duration;

use async_trait::async_trait;
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::{DeadlineTooSoon, RateLimiter, clock};

/// A token bucket (FC-04).
///
/// The only state is the moment at which the bucket is full again, in whole nanoseconds. Nothing is summed
/// up, so the rate does not drift.
#[derive(Debug)]
pub struct TokenBucket {
    /// The time in which one token comes back.
    per_token: Duration,
    /// The time in which an empty bucket becomes full.
    capacity: Duration,
    full_at: Mutex<Instant>,
}

// === impl TokenBucket ===

impl TokenBucket {
    /// Returns a full bucket of `burst` tokens, of which one comes back in each `per_token`. With a burst of
    /// 0, callers wait for every token.
    #[must_use]
    pub fn new(per_token: Duration, burst: u32) -> Self {
        let per_token = per_token.min(NEVER);
        let capacity = per_token.saturating_mul(burst);
        Self { per_token, capacity, full_at: Mutex::new(Instant::now()) }
    }

    /// Returns a full bucket that gains `rate` tokens per second. With a rate that is 0, negative or not a
    /// number, no token ever comes back.
    #[must_use]
    pub fn per_second(rate: f64, burst: u32) -> Self {
        let per_token =
            if rate > 0.0 { Duration::try_from_secs_f64(rate.recip()).unwrap_or(NEVER) } else { NEVER };
        Self::new(per_token, burst)
    }

    /// Takes a token and returns how long to wait before using it.
    ///
    /// # Errors
    ///
    /// If the wait is longer than `patience`: takes no token and returns the wait.
    pub fn reserve(&self, patience: Duration) -> Result<Duration, Duration> {
        let mut full_at = self.full_at.lock();
        let now = Instant::now();
        let Some(then) = (*full_at).max(now).checked_add(self.per_token) else { return Err(Duration::MAX) };
        // Tokens up to the capacity are available at once; the caller waits for the rest.
        let wait = then.duration_since(now).saturating_sub(self.capacity);
        if wait > patience {
            return Err(wait);
        }
        *full_at = then;
        Ok(wait)
    }
}

/// The time per token of a bucket that gains none. Short enough that many of them can be added up.
const NEVER: Duration = clock::FAR;

#[async_trait]
impl RateLimiter for TokenBucket {
    fn try_accept(&self) -> bool {
        self.reserve(Duration::ZERO).is_ok()
    }

    async fn accept(&self) {
        match self.reserve(Duration::MAX) {
            Ok(wait) => tokio::time::sleep(wait).await,
            // The moment lies beyond the range of the clock.
            Err(_) => std::future::pending().await,
        }
    }

    async fn wait(&self, deadline: Instant) -> Result<(), DeadlineTooSoon> {
        let patience = deadline.checked_duration_since(Instant::now()).ok_or(DeadlineTooSoon)?;
        let wait = self.reserve(patience).map_err(|_| DeadlineTooSoon)?;
        tokio::time::sleep(wait).await;
        Ok(())
    }

    fn stop(&self) {}

    fn per_second(&self) -> f64 {
        self.per_token.as_secs_f64().recip()
    }
}

#[cfg(test)]
mod tests {
    use futures::future::join_all;

    use super::*;

    fn secs(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    // Conformance: 55.1
    #[tokio::test(start_paused = true)]
    async fn ten_callers_share_the_rate_of_one_bucket_fc_04() {
        let bucket = TokenBucket::per_second(100.0, 1);
        let began = Instant::now();
        let caller = || async {
            for _ in 0..10 {
                bucket.accept().await;
            }
        };
        // The first token is available at once; 100 tokens take 99 intervals.
        join_all((0..10).map(|_| caller())).await;
        assert!(began.elapsed() >= Duration::from_millis(990), "{:?}", began.elapsed());
    }

    #[test]
    fn threads_together_get_only_the_burst_fc_04() {
        let bucket = TokenBucket::per_second(0.001, 100);
        let accepted = std::thread::scope(|scope| {
            let threads: Vec<_> =
                (0..10).map(|_| scope.spawn(|| (0..1000).filter(|_| bucket.try_accept()).count())).collect();
            threads.into_iter().map(|it| it.join().unwrap()).sum::<usize>()
        });
        assert_eq!(accepted, 100);
    }

    // Conformance: 55.2
    #[tokio::test(start_paused = true)]
    async fn a_bucket_starts_full_fc_04() {
        let bucket = TokenBucket::per_second(1.0, 3);
        assert_eq!([(); 4].map(|()| bucket.try_accept()), [true, true, true, false]);
    }

    // Conformance: 55.3
    #[tokio::test(start_paused = true)]
    async fn a_token_comes_back_up_to_the_burst_fc_04() {
        let bucket = TokenBucket::per_second(1.0, 1);
        assert!(bucket.try_accept());
        assert!(!bucket.try_accept());
        tokio::time::advance(secs(2)).await;
        assert!(bucket.try_accept());
        assert!(!bucket.try_accept(), "it holds at most its burst");
    }

    // Conformance: 55.4
    #[tokio::test(start_paused = true)]
    async fn accept_waits_for_its_token_fc_04() {
        let bucket = TokenBucket::per_second(10.0, 5);
        let began = Instant::now();
        for _ in 0..16 {
            bucket.accept().await;
        }
        assert!(began.elapsed() >= secs(1), "{:?}", began.elapsed());
    }

    // Conformance: 55.7
    #[tokio::test(start_paused = true)]
    async fn wait_fails_when_the_deadline_cannot_be_met_fc_04() {
        let bucket = TokenBucket::per_second(0.1, 1);
        assert_eq!(bucket.wait(Instant::now() + secs(1)).await, Ok(()));
        let began = Instant::now();
        assert_eq!(bucket.wait(Instant::now() + secs(1)).await, Err(DeadlineTooSoon));
        assert_eq!(began.elapsed(), Duration::ZERO, "it fails at once");
        assert_eq!(bucket.wait(Instant::now() + secs(10)).await, Ok(()), "no token was taken");
        assert_eq!(began.elapsed(), secs(10));
        assert_eq!(bucket.wait(began).await, Err(DeadlineTooSoon), "a deadline in the past");
    }

    // Conformance: 55.8
    #[tokio::test(start_paused = true)]
    async fn the_rate_does_not_drift_fc_04() {
        let bucket = TokenBucket::per_second(1_000_000.0 / 1_031_425.0, 1);
        for n in 0..60 {
            assert!(bucket.try_accept(), "try {n}");
            tokio::time::advance(secs(2)).await;
        }
        // Take each token at exactly the moment when it is available.
        let bucket = TokenBucket::new(Duration::from_nanos(333_333_333), 1);
        for n in 0..10_000 {
            assert!(bucket.try_accept(), "try {n}");
            tokio::time::advance(Duration::from_nanos(333_333_333)).await;
        }
    }

    #[tokio::test(start_paused = true)]
    async fn with_an_invalid_rate_only_the_burst_is_available_fc_04() {
        for rate in [0.0, -1.0, f64::NAN, 1e-300] {
            let bucket = TokenBucket::per_second(rate, 2);
            assert_eq!([(); 3].map(|()| bucket.try_accept()), [true, true, false], "{rate}");
            tokio::time::advance(secs(86_400)).await;
            assert!(!bucket.try_accept(), "{rate}");
            assert_eq!(bucket.wait(Instant::now() + secs(86_400)).await, Err(DeadlineTooSoon), "{rate}");
        }
        let bucket = TokenBucket::per_second(f64::INFINITY, 1);
        assert!((0..1000).all(|_| bucket.try_accept()));
        assert!(!TokenBucket::new(secs(1), 0).try_accept());
    }
}

//! The rate of a plugin's requests.

use oarlock_flow_control::TokenBucket;
use oarlock_plugin::Limits;

/// A rate of requests.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Rate {
    /// The average number of requests per second.
    pub(crate) per_second: f64,
    /// The largest number of requests at once.
    pub(crate) burst: u32,
}

// === impl Rate ===

impl Rate {
    /// Returns the rate that a plugin's file allows: as many at once as in two seconds.
    pub(crate) fn of(limits: &Limits) -> Self {
        let per_second = limits.requests_per_second;
        Self { per_second: per_second.into(), burst: per_second.saturating_mul(2) }
    }

    /// Returns a rate limiter with a full bucket. Its users wait for at most a bounded time.
    pub(super) fn bucket(self) -> TokenBucket {
        TokenBucket::per_second(self.per_second, self.burst)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn promise_4_the_rate_of_requests_is_that_of_the_plugins_file() {
        let rate = Rate::of(&Limits { requests_per_second: 4, ..Limits::default() });
        assert_eq!(Rate::of(&Limits::default()), Rate { per_second: 100.0, burst: 200 });
        let bucket = rate.bucket();
        for _ in 0..8 {
            assert_eq!(bucket.reserve(Duration::ZERO), Ok(Duration::ZERO));
        }
        assert_eq!(bucket.reserve(Duration::ZERO), Err(Duration::from_millis(250)));
    }

    #[tokio::test(start_paused = true)]
    async fn a_burst_passes_then_the_rate_holds_then_it_says_when() {
        let bucket = Rate { per_second: 10.0, burst: 3 }.bucket();
        let patience = Duration::from_millis(250);
        for _ in 0..3 {
            assert_eq!(bucket.reserve(patience), Ok(Duration::ZERO));
        }
        assert_eq!(bucket.reserve(patience), Ok(Duration::from_millis(100)));
        assert_eq!(bucket.reserve(patience), Ok(Duration::from_millis(200)));
        assert_eq!(bucket.reserve(patience), Err(Duration::from_millis(300)));
        tokio::time::advance(Duration::from_secs(60)).await;
        assert_eq!(bucket.reserve(patience), Ok(Duration::ZERO));
    }
}

//! The rate of a plugin's requests.

use oarlock_flow_control::TokenBucket;

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

//! How many requests a plugin may make.

use oarlock_flow_control::TokenBucket;

/// Requests per second, and how many may come at once.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rate {
    /// On average.
    pub per_second: f64,
    /// At once.
    pub burst: u32,
}

// === impl Rate ===

impl Rate {
    /// Makes a full bucket. Its users wait as far as waiting is bearable.
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

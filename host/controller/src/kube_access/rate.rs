//! A token bucket that makes its users wait, as far as waiting is bearable.

use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

/// Requests per second, and how many may come at once.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rate {
    /// On average.
    pub per_second: f64,
    /// At once.
    pub burst: f64,
}

/// The bucket.
#[derive(Debug)]
pub(super) struct Bucket {
    rate: Rate,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    tokens: f64,
    at: Instant,
}

// === impl Bucket ===

impl Bucket {
    pub(super) fn full(rate: Rate) -> Self {
        Self { rate, state: Mutex::new(State { tokens: rate.burst, at: Instant::now() }) }
    }

    /// Takes a token and returns how long to wait before using it; takes none, and tells when one would be
    /// there, if that is longer than `patience`.
    pub(super) fn take(&self, patience: Duration) -> Result<Duration, Duration> {
        let mut state = self.state.lock();
        let now = Instant::now();
        let gained = now.saturating_duration_since(state.at).as_secs_f64() * self.rate.per_second;
        state.tokens = (state.tokens + gained).min(self.rate.burst);
        state.at = now;
        let missing = 1.0 - state.tokens;
        let wait = Duration::from_secs_f64((missing / self.rate.per_second).max(0.0));
        if wait > patience {
            return Err(wait);
        }
        state.tokens -= 1.0;
        Ok(wait)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_burst_passes_then_the_rate_holds_then_it_says_when() {
        let bucket = Bucket::full(Rate { per_second: 10.0, burst: 3.0 });
        let patience = Duration::from_millis(250);
        for _ in 0..3 {
            assert_eq!(bucket.take(patience), Ok(Duration::ZERO));
        }
        assert_eq!(bucket.take(patience), Ok(Duration::from_millis(100)));
        assert_eq!(bucket.take(patience), Ok(Duration::from_millis(200)));
        assert_eq!(bucket.take(patience), Err(Duration::from_millis(300)));
        tokio::time::advance(Duration::from_secs(60)).await;
        assert_eq!(bucket.take(patience), Ok(Duration::ZERO));
    }
}

//! Rate limiters that accept always or never, for tests and for configurations without a limit.

use async_trait::async_trait;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::{DeadlineTooSoon, RateLimiter};

/// Accepts every call at once (client-go: `NewFakeAlwaysRateLimiter`).
#[derive(Clone, Copy, Debug, Default)]
pub struct AlwaysAccept;

/// Accepts no call. Waits last until [`stop`](RateLimiter::stop) (client-go: `NewFakeNeverRateLimiter`).
#[derive(Clone, Debug, Default)]
pub struct NeverAccept {
    stopped: CancellationToken,
}

// === impl AlwaysAccept ===

#[async_trait]
impl RateLimiter for AlwaysAccept {
    fn try_accept(&self) -> bool {
        true
    }

    async fn accept(&self) {}

    async fn wait(&self, _deadline: Instant) -> Result<(), DeadlineTooSoon> {
        Ok(())
    }

    fn stop(&self) {}

    fn per_second(&self) -> f64 {
        1.0
    }
}

// === impl NeverAccept ===

#[async_trait]
impl RateLimiter for NeverAccept {
    fn try_accept(&self) -> bool {
        false
    }

    async fn accept(&self) {
        self.stopped.cancelled().await;
    }

    async fn wait(&self, _deadline: Instant) -> Result<(), DeadlineTooSoon> {
        Err(DeadlineTooSoon)
    }

    fn stop(&self) {
        self.stopped.cancel();
    }

    fn per_second(&self) -> f64 {
        1.0
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use futures::FutureExt;

    use super::*;

    // Conformance: 55.5
    #[tokio::test(start_paused = true)]
    async fn always_accepts_fc_04() {
        for _ in 0..1000 {
            assert!(AlwaysAccept.try_accept());
            assert_eq!(AlwaysAccept.accept().now_or_never(), Some(()));
            assert_eq!(AlwaysAccept.wait(Instant::now()).now_or_never(), Some(Ok(())));
        }
    }

    // Conformance: 55.6
    #[tokio::test(start_paused = true)]
    async fn never_accepts_and_blocks_until_it_is_stopped_fc_04() {
        let limiter = NeverAccept::default();
        assert!(!limiter.try_accept());
        let a_day = Duration::from_secs(86_400);
        assert_eq!(limiter.wait(Instant::now() + a_day).await, Err(DeadlineTooSoon));
        let mut waits = limiter.accept();
        assert!(tokio::time::timeout(a_day, &mut waits).await.is_err(), "it is still blocked");
        limiter.stop();
        waits.await;
    }
}

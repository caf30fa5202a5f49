//! Limiters without a limit, or with nothing but one. For tests, and for those who are told to have none.

use async_trait::async_trait;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::{DeadlineTooSoon, Limiter};

/// Lets everybody through at once.
#[derive(Clone, Copy, Debug, Default)]
pub struct Always;

/// Lets nobody through. Those who wait do so until it is stopped.
#[derive(Clone, Debug, Default)]
pub struct Never {
    stopped: CancellationToken,
}

// === impl Always ===

#[async_trait]
impl Limiter for Always {
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

// === impl Never ===

#[async_trait]
impl Limiter for Never {
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
    async fn fc_always_accepts() {
        for _ in 0..1000 {
            assert!(Always.try_accept());
            assert_eq!(Always.accept().now_or_never(), Some(()));
            assert_eq!(Always.wait(Instant::now()).now_or_never(), Some(Ok(())));
        }
    }

    // Conformance: 55.6
    #[tokio::test(start_paused = true)]
    async fn fc_never_accepts_and_blocks_until_it_is_stopped() {
        let limiter = Never::default();
        assert!(!limiter.try_accept());
        let a_day = Duration::from_secs(86_400);
        assert_eq!(limiter.wait(Instant::now() + a_day).await, Err(DeadlineTooSoon));
        let mut waits = limiter.accept();
        assert!(tokio::time::timeout(a_day, &mut waits).await.is_err(), "it is still blocked");
        limiter.stop();
        waits.await;
    }
}

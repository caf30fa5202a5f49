//! The trait of rate limiters (FC-04).

use async_trait::async_trait;
use tokio::time::Instant;

/// Accepts calls at a certain rate. Many callers share one limiter, in no particular order.
#[async_trait]
pub trait RateLimiter: Send + Sync {
    /// Takes a token and returns true, if one is available. Never waits.
    fn try_accept(&self) -> bool;

    /// Reserves a token and sleeps until it is available. A future that is dropped keeps its reservation.
    async fn accept(&self);

    /// Like [`accept`](Self::accept), but fails at once if no token is available before the deadline, and
    /// takes none then.
    async fn wait(&self, deadline: Instant) -> Result<(), DeadlineTooSoon>;

    /// Ends the waits of a limiter that never accepts. Other limiters do nothing.
    fn stop(&self);

    /// Returns the number of tokens per second (client-go: `QPS`).
    fn per_second(&self) -> f64;
}

/// No token is available before the deadline.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("the rate limit has no token before the deadline")]
pub struct DeadlineTooSoon;

//! How often something may be done: token buckets, and back-off for each of many ids (FC-01 … FC-04).
//!
//! Nothing here has a task or a thread of its own; the clock is `tokio::time`, and whoever waits does so in the
//! caller's future. Dropping that future is how waiting is cancelled.

mod fakes;
mod keyed_backoff;
mod token_bucket;

use async_trait::async_trait;
use tokio::time::Instant;

pub use self::{
    fakes::{Always, Never},
    keyed_backoff::{KeyedBackoff, KeyedBackoffConfig},
    token_bucket::TokenBucket,
};

/// Lets its callers through at some rate. One limiter is shared by many callers; who waits first need not be first.
#[async_trait]
pub trait Limiter: Send + Sync {
    /// Takes a token if one is there. Never waits.
    fn try_accept(&self) -> bool;

    /// Takes a token, reserving one and sleeping until it is there. Dropped in the middle, the reservation stays.
    async fn accept(&self);

    /// The same, but fails at once, without taking anything, when no token will be there by the deadline.
    async fn wait(&self, deadline: Instant) -> Result<(), DeadlineTooSoon>;

    /// Ends whatever waits for nothing else. Only a limiter that would never let anybody through has to do anything here.
    fn stop(&self);

    /// How many tokens there are in a second.
    fn per_second(&self) -> f64;
}

/// The token would come after the deadline.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("the rate limit lets nothing through before the deadline")]
pub struct DeadlineTooSoon;

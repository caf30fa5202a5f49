//! Back-off, rate limits and retries: client-go's `util/flowcontrol`, `util/retry` and the back-off of
//! `util/wait`.
//!
//! ```text
//! Backoff: the shape (initial, factor, jitter, cap) ─┬→ ResettingBackoff: one sequence of delays
//!                                                    ├→ KeyedBackoff: a delay for each of many ids
//!                                                    └→ retry::on_error: a few tries of one operation
//! TokenBucket: a RateLimiter with a rate and a burst
//! KeyedPermits: how much is done at once, in all and for each of many keys
//! clock: sums and products of durations that saturate
//! ```
//!
//! No type has a task or a thread; the clock is `tokio::time`, so that tests can pause it. A caller waits in
//! its own future, and cancels the wait by dropping that future.
//!
//! ```
//! use std::time::Duration;
//!
//! use oarlock_flow_control::{Backoff, RateLimiter, TokenBucket};
//!
//! let backoff = Backoff { jitter: 0.0, ..Backoff::default() };
//! let first = backoff.next(None);
//! let second = backoff.next(Some(first));
//! assert_eq!((first.as_millis(), second.as_millis()), (800, 1600));
//!
//! let bucket = TokenBucket::per_second(10.0, 2);
//! assert!(bucket.try_accept() && bucket.try_accept());
//! assert!(!bucket.try_accept(), "the burst is used up");
//! assert!(bucket.reserve(Duration::from_secs(1)).is_ok(), "the next token comes within 100 ms");
//! ```

#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod backoff;
pub mod clock;
mod fakes;
mod keyed_backoff;
mod keyed_permits;
mod rate_limiter;
pub mod retry;
mod token_bucket;

pub use backoff::{Backoff, ResettingBackoff};
pub use fakes::{AlwaysAccept, NeverAccept};
pub use keyed_backoff::KeyedBackoff;
pub use keyed_permits::{KeyedPermit, KeyedPermits};
pub use rate_limiter::{DeadlineTooSoon, RateLimiter};
pub use token_bucket::TokenBucket;

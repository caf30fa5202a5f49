//! Tries an operation again, a few times (client-go: `util/retry`).
//!
//! For callers that read, change and write an object. Each try must read again: the same write would conflict
//! again.

use std::future::Future;
use std::time::Duration;

use crate::Backoff;

/// The number of tries and the delays between them (client-go: `wait.Backoff` with `Steps`).
#[derive(Clone, Debug, PartialEq)]
pub struct Steps {
    /// The greatest number of tries. At least one is made.
    pub tries: u32,
    /// The delays between the tries.
    pub backoff: Backoff,
}

// === impl Steps ===

impl Steps {
    /// For objects with few writers: five tries, 10 ms apart (client-go: `DefaultRetry`).
    pub const RETRY: Self = Self::new(5, 1.0);

    /// For objects with many writers: four tries, after 10, 50 and 250 ms (client-go: `DefaultBackoff`).
    pub const BACKOFF: Self = Self::new(4, 5.0);

    const fn new(tries: u32, factor: f64) -> Self {
        let initial = Duration::from_millis(10);
        Self { tries, backoff: Backoff { initial, factor, jitter: 0.1, cap: Duration::MAX } }
    }
}

/// Calls `attempt` until it succeeds, fails with an error that is not retried, or has used up its tries; then
/// returns the last result as it is. Cancelled by dropping the future.
pub async fn on_error<T, E, Fut>(
    steps: &Steps,
    is_retried: impl Fn(&E) -> bool,
    mut attempt: impl FnMut() -> Fut,
) -> Result<T, E>
where
    Fut: Future<Output = Result<T, E>>,
{
    let Steps { tries, backoff } = steps;
    let mut delay = backoff.next(None);
    for _ in 1..*tries {
        match attempt().await {
            Err(error) if is_retried(&error) => {}
            result => return result,
        }
        let addition = backoff.random_addition(delay, &mut rand::rng());
        tokio::time::sleep(delay.saturating_add(addition)).await;
        delay = backoff.next(Some(delay));
    }
    attempt().await
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    // Conformance: A5.2
    #[tokio::test(start_paused = true)]
    async fn a_cancellation_is_returned_as_it_is_and_not_retried() {
        #[derive(Debug, PartialEq)]
        enum Error {
            Conflict,
            Cancelled,
        }
        let n_tries = Cell::new(0);
        let ended: Result<(), Error> = on_error(
            &Steps::RETRY,
            |error| *error == Error::Conflict,
            || {
                n_tries.set(n_tries.get() + 1);
                std::future::ready(Err(Error::Cancelled))
            },
        )
        .await;
        assert_eq!((ended, n_tries.get()), (Err(Error::Cancelled), 1));
    }

    #[tokio::test(start_paused = true)]
    async fn delays_grow_by_the_factor_with_jitter() {
        let began = tokio::time::Instant::now();
        let never: Result<(), ()> =
            on_error(&Steps::BACKOFF, |()| true, || std::future::ready(Err(()))).await;
        assert_eq!(never, Err(()));
        let millis = began.elapsed().as_millis();
        assert!((310..=344).contains(&millis), "{millis}: 10, 50 and 250 ms, and at most a tenth more");
    }
}

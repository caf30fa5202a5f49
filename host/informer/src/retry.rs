//! Trying a write again that somebody else's write got in the way of.
//!
//! For callers that read, change and write an object. Each try has to read anew: repeating the same write conflicts
//! again. Nothing in this crate retries by itself (RL-74).

use std::{future::Future, time::Duration};

use rand::Rng;

use crate::clock;

/// How often to try, and how long to wait between the tries.
#[derive(Clone, Debug, PartialEq)]
pub struct Steps {
    /// How many tries there are at most. There is always one.
    pub tries: u32,
    /// How long to wait after the first.
    pub initial: Duration,
    /// What each wait is multiplied by to give the next.
    pub factor: f64,
    /// How much is added at random at most, as a part of the wait.
    pub jitter: f64,
}

// === impl Steps ===

impl Steps {
    /// Where nobody else is expected to write much: five tries, 10 ms apart.
    pub const RETRY: Self = Self { tries: 5, initial: Duration::from_millis(10), factor: 1.0, jitter: 0.1 };

    /// Where many write the same object: four tries, after 10, 50 and 250 ms.
    pub const BACKOFF: Self = Self { tries: 4, initial: Duration::from_millis(10), factor: 5.0, jitter: 0.1 };
}

/// Tries until it works, the error is not one to try again for, or the tries are used up: then the last error is
/// returned as it is. Cancelled by dropping the future.
pub async fn on_error<T, E, Fut>(
    steps: &Steps,
    is_retried: impl Fn(&E) -> bool,
    mut attempt: impl FnMut() -> Fut,
) -> Result<T, E>
where
    Fut: Future<Output = Result<T, E>>,
{
    let mut wait = steps.initial;
    for _ in 1..steps.tries {
        match attempt().await {
            Err(error) if is_retried(&error) => {}
            ended => return ended,
        }
        let jitter = clock::scaled(wait, steps.jitter * rand::rng().random::<f64>());
        tokio::time::sleep(wait.saturating_add(jitter)).await;
        wait = clock::scaled(wait, steps.factor);
    }
    attempt().await
}

/// The same for writes through [`kube`]: tried again is what the API server answers with the reason `Conflict`.
pub async fn on_conflict<T, Fut>(steps: &Steps, attempt: impl FnMut() -> Fut) -> Result<T, kube::Error>
where
    Fut: Future<Output = Result<T, kube::Error>>,
{
    on_error(steps, is_conflict, attempt).await
}

/// Whether the API server refused a write because the object is not as the write expected it. That an object exists
/// already, which has the same status code, is no conflict.
#[must_use]
pub fn is_conflict(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.reason == "Conflict")
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use kube::core::Status;

    use super::*;

    fn api_error(code: u16, reason: &str) -> kube::Error {
        let status = Status { code, reason: reason.to_owned(), ..Status::default() };
        kube::Error::Api(status.boxed())
    }

    /// Answers the errors one after another, then success; returns how it ended and how often it was tried.
    async fn tried(reasons: &[(u16, &str)]) -> (Result<(), String>, usize) {
        let n_tries = Cell::new(0);
        let ended = on_conflict(&Steps::RETRY, || {
            let n = n_tries.replace(n_tries.get() + 1);
            std::future::ready(match reasons.get(n) {
                Some((code, reason)) => Err(api_error(*code, reason)),
                None => Ok(()),
            })
        })
        .await;
        let ended = ended.map_err(|error| match error {
            kube::Error::Api(status) => status.reason.clone(),
            error => error.to_string(),
        });
        (ended, n_tries.get())
    }

    // Conformance: A5.1
    #[tokio::test(start_paused = true)]
    async fn retry_on_conflict() {
        let conflict = (409, "Conflict");
        assert_eq!(tried(&[conflict; 10]).await, (Err("Conflict".to_owned()), 5));
        assert_eq!(tried(&[]).await, (Ok(()), 1));
        assert_eq!(tried(&[(404, "NotFound")]).await, (Err("NotFound".to_owned()), 1));
        assert_eq!(tried(&[conflict, conflict]).await, (Ok(()), 3));
        assert_eq!(tried(&[conflict, (404, "NotFound")]).await, (Err("NotFound".to_owned()), 2));
        assert_eq!(tried(&[(409, "AlreadyExists")]).await, (Err("AlreadyExists".to_owned()), 1));
    }

    // Conformance: A5.2
    #[tokio::test(start_paused = true)]
    async fn retry_on_conflict_preserves_a_cancellation() {
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
        assert_eq!((ended, n_tries.get()), (Err(Error::Cancelled), 1), "as it is, and at once");
    }

    #[tokio::test(start_paused = true)]
    async fn waits_grow_by_the_factor_and_a_random_part() {
        let began = tokio::time::Instant::now();
        let never: Result<(), ()> =
            on_error(&Steps::BACKOFF, |()| true, || std::future::ready(Err(()))).await;
        assert_eq!(never, Err(()));
        let millis = began.elapsed().as_millis();
        assert!((310..=344).contains(&millis), "{millis}: 10, 50 and 250 ms, and at most a tenth more");
    }
}

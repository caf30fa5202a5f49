//! Retries a write that conflicted with another one, through [`kube`] (client-go: `retry.RetryOnConflict`).
//!
//! Each try must read the object again: the same write would conflict again. The informer itself retries no
//! write (RL-74).

use std::future::Future;

use oarlock_flow_control::retry::{Steps, on_error};

/// Calls `attempt` again while it fails with a conflict. See [`on_error`].
pub async fn on_conflict<T, Fut>(steps: &Steps, attempt: impl FnMut() -> Fut) -> Result<T, kube::Error>
where
    Fut: Future<Output = Result<T, kube::Error>>,
{
    on_error(steps, is_conflict, attempt).await
}

/// Returns true if the API server refused a write because the object has changed since the caller read it.
///
/// `AlreadyExists` has the same status code and is not a conflict.
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

    /// Fails with each of these errors in turn, then succeeds; returns the result and the number of tries.
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
    async fn only_conflicts_are_retried_five_times() {
        let conflict = (409, "Conflict");
        assert_eq!(tried(&[conflict; 10]).await, (Err("Conflict".to_owned()), 5));
        assert_eq!(tried(&[]).await, (Ok(()), 1));
        assert_eq!(tried(&[(404, "NotFound")]).await, (Err("NotFound".to_owned()), 1));
        assert_eq!(tried(&[conflict, conflict]).await, (Ok(()), 3));
        assert_eq!(tried(&[conflict, (404, "NotFound")]).await, (Err("NotFound".to_owned()), 2));
        assert_eq!(tried(&[(409, "AlreadyExists")]).await, (Err("AlreadyExists".to_owned()), 1));
    }
}

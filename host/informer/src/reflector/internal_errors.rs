//! Limits the time for which a reflector retries a watch after internal errors of the server (RW).

use std::time::Duration;

use tokio::time::Instant;

/// After this much time without an internal error, the next one starts a new series.
const SERIES_GAP: Duration = Duration::from_secs(60);

/// A series of internal errors.
#[derive(Debug)]
pub(super) struct InternalErrors {
    budget: Duration,
    first_and_last: Option<(Instant, Instant)>,
}

// === impl InternalErrors ===

impl InternalErrors {
    /// Returns an empty series with a limit to its length; with a zero limit nothing may be retried.
    pub(super) fn new(budget: Duration) -> Self {
        Self { budget, first_and_last: None }
    }

    /// Notes an internal error, and returns whether the reflector may retry the watch.
    pub(super) fn may_retry_after_another(&mut self) -> bool {
        self.note();
        self.may_retry()
    }

    /// Notes an internal error. Other errors must not be noted (RW-01, RW-03).
    fn note(&mut self) {
        let now = Instant::now();
        let first = match self.first_and_last {
            Some((first, last)) if now - last < SERIES_GAP => first,
            _ => now,
        };
        self.first_and_last = Some((first, now));
    }

    /// Returns whether the series is within its budget. A series beyond it is forgotten (RW-02).
    fn may_retry(&mut self) -> bool {
        if self.budget.is_zero() {
            return false;
        }
        let is_within = self.first_and_last.is_none_or(|(first, _)| first.elapsed() <= self.budget);
        if !is_within {
            self.first_and_last = None;
        }
        is_within
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn pass(seconds: u64) {
        tokio::time::advance(Duration::from_secs(seconds)).await;
    }

    #[tokio::test(start_paused = true)]
    async fn a_minute_without_an_error_starts_a_new_series_rw_01() {
        let mut errors = InternalErrors::new(Duration::from_secs(100));
        assert!(errors.may_retry_after_another());
        pass(59).await;
        assert!(errors.may_retry_after_another());
        // A minute after the last error, so the budget is whole again.
        pass(60).await;
        assert!(errors.may_retry_after_another());
        pass(59).await;
        assert!(errors.may_retry_after_another());
        pass(41).await;
        assert!(errors.may_retry_after_another(), "100 s since the first of the series, inclusive (RW-02)");
        pass(1).await;
        assert!(!errors.may_retry_after_another());
    }

    #[tokio::test(start_paused = true)]
    async fn a_spent_budget_is_forgotten_rw_02() {
        let mut errors = InternalErrors::new(Duration::from_secs(10));
        assert!(errors.may_retry_after_another());
        pass(11).await;
        assert!(!errors.may_retry_after_another());
        assert!(errors.may_retry_after_another(), "the next one starts a new series");
        let mut never = InternalErrors::new(Duration::ZERO);
        assert!(!never.may_retry_after_another());
    }

    #[tokio::test(start_paused = true)]
    async fn asking_without_a_new_error_does_not_prolong_the_series_rw_03() {
        let mut errors = InternalErrors::new(Duration::from_secs(50));
        assert!(errors.may_retry_after_another());
        pass(50).await;
        assert!(errors.may_retry());
        pass(1).await;
        assert!(!errors.may_retry());
    }
}

//! For how long a server may fail inside before a list is tried (RW).

use std::time::Duration;

use tokio::time::Instant;

/// After so much time without one, errors are another story.
const FORGET_AFTER: Duration = Duration::from_secs(60);

/// Internal errors in a row, and since when.
#[derive(Debug)]
pub(super) struct InternalErrors {
    budget: Duration,
    first_and_last: Option<(Instant, Instant)>,
}

// === impl InternalErrors ===

impl InternalErrors {
    pub(super) fn new(budget: Duration) -> Self {
        Self { budget, first_and_last: None }
    }

    /// Notes an internal error; no others count (RW-01, RW-03).
    pub(super) fn note(&mut self) {
        let now = Instant::now();
        let first = match self.first_and_last {
            Some((first, last)) if now - last < FORGET_AFTER => first,
            _ => now,
        };
        self.first_and_last = Some((first, now));
    }

    /// Whether the errors in a row have gone on for no longer than the budget. If they have, they are forgotten (RW-02).
    pub(super) fn may_retry(&mut self) -> bool {
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

    fn fail(errors: &mut InternalErrors) -> bool {
        errors.note();
        errors.may_retry()
    }

    #[tokio::test(start_paused = true)]
    async fn a_minute_without_an_error_begins_a_new_story_rw_01() {
        let mut errors = InternalErrors::new(Duration::from_secs(100));
        assert!(fail(&mut errors));
        pass(59).await;
        assert!(fail(&mut errors));
        // A minute after the last: forgotten, so that the budget is whole again.
        pass(60).await;
        assert!(fail(&mut errors));
        pass(59).await;
        assert!(fail(&mut errors));
        pass(41).await;
        assert!(fail(&mut errors), "100 s since the first of this story, inclusive (RW-02)");
        pass(1).await;
        assert!(!fail(&mut errors));
    }

    #[tokio::test(start_paused = true)]
    async fn a_spent_budget_is_forgotten_rw_02() {
        let mut errors = InternalErrors::new(Duration::from_secs(10));
        assert!(fail(&mut errors));
        pass(11).await;
        assert!(!fail(&mut errors));
        assert!(fail(&mut errors), "the next one begins anew");
        let mut never = InternalErrors::new(Duration::ZERO);
        assert!(!fail(&mut never));
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_not_noted_changes_nothing_rw_03() {
        let mut errors = InternalErrors::new(Duration::from_secs(50));
        assert!(fail(&mut errors));
        pass(50).await;
        assert!(errors.may_retry());
        pass(1).await;
        assert!(!errors.may_retry());
    }
}

//! When what failed is tried again, and when it no longer is.

use std::time::Duration;

/// How failures are retried. One per host; every object and key counts for itself.
#[derive(Clone, Debug)]
pub struct RetryPolicy {
    /// The wait after the first failure; it doubles with each further one.
    pub base: Duration,
    /// It grows no longer than this.
    pub cap: Duration,
    /// After so many calls that answered a failure the object is parked. A plugin's file says it: `limits.tries`.
    pub tries: u32,
    /// After so many calls that cost the instance the object is parked. A plugin's file says it: `limits.lossTries`.
    pub loss_tries: u32,
    /// So often everything that is parked is tried again, should nothing happen to it before.
    pub parked_again: Duration,
}

/// Losses in a row that a few bad objects may explain: what is healthy must not wait long behind them.
const FEW: u32 = 10;
/// No wait is longer before the losses in a row are more than a few.
const CAP_OF_FEW: Duration = Duration::from_secs(4);

/// How fresh instances follow lost ones, so that a plugin that always breaks costs little.
///
/// Losses are in a row while no call is answered between them. Those of suspects do not count: they have a back-off of their own.
#[derive(Clone, Debug)]
pub struct RestartPolicy {
    /// The wait after the second loss in a row; the first is made good at once. Doubles with each further one, up to 4 s for
    /// the first ten.
    pub base: Duration,
    /// It grows no longer than this.
    pub cap: Duration,
    /// An instance that has lived this long ends the row.
    pub calm: Duration,
}

/// The losses in a row of one plugin.
#[derive(Debug, Default)]
pub(super) struct Restarts {
    in_a_row: u32,
    last: Option<tokio::time::Instant>,
}

// === impl RetryPolicy ===

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            base: Duration::from_millis(200),
            cap: Duration::from_secs(30),
            tries: 6,
            loss_tries: 3,
            parked_again: Duration::from_secs(300),
        }
    }
}

impl RetryPolicy {
    /// Returns how long to wait after so many failures, at least one; none when it is time to park.
    #[must_use]
    pub fn after(&self, failures: u32) -> Option<Duration> {
        (failures < self.tries).then(|| self.back_off(failures))
    }

    /// Returns how long to wait after so many failures, at least one, however many they are.
    pub(super) fn back_off(&self, failures: u32) -> Duration {
        doubled(self.base, failures.saturating_sub(1), self.cap)
    }
}

// === impl RestartPolicy ===

impl Default for RestartPolicy {
    fn default() -> Self {
        Self {
            base: Duration::from_millis(500),
            cap: Duration::from_secs(300),
            calm: Duration::from_secs(60),
        }
    }
}

// === impl Restarts ===

impl Restarts {
    /// Counts a loss. Returns how many there were in a row, and how long to wait before the next instance.
    pub(super) fn lost(&mut self, policy: &RestartPolicy) -> (u32, Duration) {
        let now = tokio::time::Instant::now();
        // The wait that came before the instance is not part of its life.
        let waited = self.delay(policy);
        if self.last.is_some_and(|last| now.saturating_duration_since(last) >= waited + policy.calm) {
            self.in_a_row = 0;
        }
        self.in_a_row = self.in_a_row.saturating_add(1);
        self.last = Some(now);
        (self.in_a_row, self.delay(policy))
    }

    /// A call was answered, which ends the row.
    pub(super) fn answered(&mut self) {
        self.in_a_row = 0;
    }

    pub(super) fn in_a_row(&self) -> u32 {
        self.in_a_row
    }

    fn delay(&self, policy: &RestartPolicy) -> Duration {
        match self.in_a_row {
            0 | 1 => Duration::ZERO,
            n if n <= FEW => doubled(policy.base, n - 2, CAP_OF_FEW.min(policy.cap)),
            n => doubled(CAP_OF_FEW, n - FEW, policy.cap),
        }
    }
}

fn doubled(base: Duration, times: u32, cap: Duration) -> Duration {
    base.saturating_mul(1_u32.checked_shl(times).unwrap_or(u32::MAX)).min(cap)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_the_cap_and_then_there_is_none() {
        let policy = RetryPolicy { cap: Duration::from_secs(1), tries: 5, ..RetryPolicy::default() };
        let waits: Vec<_> = (1..=5).map(|n| policy.after(n).map(|wait| wait.as_millis())).collect();
        assert_eq!(waits, [Some(200), Some(400), Some(800), Some(1000), None]);
        let patient = RetryPolicy { tries: u32::MAX, ..policy };
        assert_eq!(patient.after(100), Some(Duration::from_secs(1)));
    }

    #[tokio::test(start_paused = true)]
    async fn a_crash_loop_slows_down_and_calm_ends_it() {
        let policy = RestartPolicy::default();
        let mut restarts = Restarts::default();
        let mut waits = Vec::new();
        for _ in 0..18 {
            let (_, wait) = restarts.lost(&policy);
            waits.push(wait.as_millis());
            tokio::time::advance(wait).await;
        }
        assert_eq!(waits[..6], [0, 500, 1000, 2000, 4000, 4000]);
        assert_eq!(waits[9..12], [4000, 8000, 16_000]);
        assert_eq!(waits[17], 300_000);
        tokio::time::advance(policy.calm).await;
        assert_eq!(restarts.lost(&policy), (1, Duration::ZERO));
    }

    #[tokio::test(start_paused = true)]
    async fn promise_4_a_call_that_is_answered_ends_the_row() {
        let policy = RestartPolicy::default();
        let mut restarts = Restarts::default();
        for _ in 0..100 {
            assert_eq!(restarts.lost(&policy), (1, Duration::ZERO));
            restarts.answered();
        }
    }
}

//! How long the host waits after a failed call, and after a lost instance.

use std::time::Duration;

use crate::config::{PluginFile, Retry};

/// How the host retries calls that failed. Each object and key has its own count of failures.
#[derive(Clone, Debug)]
pub struct RetryPolicy {
    /// The wait after the first failure. It doubles with each further one. A plugin's file may set it:
    /// `retry.initialDelay`.
    pub base: Duration,
    /// The longest wait. A plugin's file may set it: `retry.maxDelay`.
    pub cap: Duration,
    /// The host parks an object after so many failures in a row. A plugin's file may set it: `limits.tries`.
    pub tries: u32,
    /// The host parks an object after it cost so many instances. A plugin's file may set it:
    /// `limits.lossTries`.
    pub loss_tries: u32,
    /// The period of the slow timer, which retries everything that is parked. A plugin's file may set it:
    /// `retry.parkedDelay`.
    pub parked_again: Duration,
}

/// So many losses in a row may come from a few bad objects, which must not delay the healthy ones for long.
const FEW: u32 = 10;
/// The longest wait within the first [`FEW`] losses in a row.
const CAP_OF_FEW: Duration = Duration::from_secs(4);

/// How long the host waits before it makes the next instance, so that a plugin that always traps costs
/// little.
///
/// Losses are in a row while no call is answered between them. Losses by calls in crash back-off do not
/// count: they have a back-off of their own.
#[derive(Clone, Debug)]
pub struct RestartPolicy {
    /// The wait after the second loss in a row; after the first one there is none. It doubles with each
    /// further loss, up to 4 s within the first ten.
    pub base: Duration,
    /// The longest wait.
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
        let Retry { initial_delay: base, max_delay: cap, parked_delay: parked_again } = Retry::default();
        Self { base, cap, tries: 6, loss_tries: 3, parked_again }
    }
}

impl RetryPolicy {
    /// Returns the policy for a plugin: what its file sets, and else what this one has.
    pub(crate) fn of(&self, file: &PluginFile) -> Self {
        let (tries, loss_tries) = (file.limits.tries, file.limits.loss_tries);
        match &file.retry {
            None => Self { tries, loss_tries, ..self.clone() },
            Some(Retry { initial_delay, max_delay, parked_delay }) => {
                Self { base: *initial_delay, cap: *max_delay, tries, loss_tries, parked_again: *parked_delay }
            }
        }
    }

    /// Returns how long to wait after so many failures (at least one); `None` when the object is to be
    /// parked.
    #[must_use]
    pub fn after(&self, failures: u32) -> Option<Duration> {
        (failures < self.tries).then(|| self.back_off(failures))
    }

    /// Returns how long to wait after so many failures (at least one), without a limit of tries.
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
    /// Counts a loss by a call that began at the given time. Returns the number of losses in a row, and the
    /// wait before the next instance. Calls that were in progress together at the last loss count once.
    pub(super) fn lost(&mut self, policy: &RestartPolicy, began: tokio::time::Instant) -> (u32, Duration) {
        let now = tokio::time::Instant::now();
        if self.last.is_some_and(|last| began < last) {
            return (self.in_a_row, self.delay(policy));
        }
        // The wait before the instance is not part of its life.
        let waited = self.delay(policy);
        if self.last.is_some_and(|last| now.saturating_duration_since(last) >= waited + policy.calm) {
            self.in_a_row = 0;
        }
        self.in_a_row = self.in_a_row.saturating_add(1);
        self.last = Some(now);
        (self.in_a_row, self.delay(policy))
    }

    /// Notes that a call was answered, which ends the row.
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
    fn waits_double_up_to_the_cap_until_the_tries_are_used_up() {
        let policy = RetryPolicy { cap: Duration::from_secs(1), tries: 5, ..RetryPolicy::default() };
        let waits: Vec<_> = (1..=5).map(|n| policy.after(n).map(|wait| wait.as_millis())).collect();
        assert_eq!(waits, [Some(200), Some(400), Some(800), Some(1000), None]);
        let patient = RetryPolicy { tries: u32::MAX, ..policy };
        assert_eq!(patient.after(100), Some(Duration::from_secs(1)));
    }

    #[test]
    fn the_file_of_a_plugin_sets_its_delays_and_tries() {
        let host = RetryPolicy { base: Duration::from_millis(20), ..RetryPolicy::default() };
        let of = |retry: &str| {
            let text =
                "name: p\ncomponent: p.wasm\nserviceAccount: {namespace: a, name: b}\nlimits: {tries: 7}\n";
            host.of(&PluginFile::parse("p.yaml".as_ref(), &format!("{text}{retry}")).unwrap())
        };
        let unset = of("");
        assert_eq!((unset.base, unset.cap, unset.tries), (host.base, host.cap, 7));
        let set = of("retry: {initialDelay: 5ms, maxDelay: 500s}");
        assert_eq!((set.base, set.cap), (Duration::from_millis(5), Duration::from_secs(500)));
        assert_eq!((set.tries, set.parked_again), (7, RetryPolicy::default().parked_again));
    }

    #[tokio::test(start_paused = true)]
    async fn waits_grow_in_a_crash_loop_and_a_long_life_ends_it() {
        let policy = RestartPolicy::default();
        let mut restarts = Restarts::default();
        let mut waits = Vec::new();
        for _ in 0..18 {
            let (_, wait) = restarts.lost(&policy, tokio::time::Instant::now());
            waits.push(wait.as_millis());
            tokio::time::advance(wait).await;
        }
        assert_eq!(waits[..6], [0, 500, 1000, 2000, 4000, 4000]);
        assert_eq!(waits[9..12], [4000, 8000, 16_000]);
        assert_eq!(waits[17], 300_000);
        tokio::time::advance(policy.calm).await;
        assert_eq!(restarts.lost(&policy, tokio::time::Instant::now()), (1, Duration::ZERO));
    }

    #[tokio::test(start_paused = true)]
    async fn promise_4_an_answered_call_ends_the_row_of_losses() {
        let policy = RestartPolicy::default();
        let mut restarts = Restarts::default();
        for _ in 0..100 {
            assert_eq!(restarts.lost(&policy, tokio::time::Instant::now()), (1, Duration::ZERO));
            restarts.answered();
        }
    }
}

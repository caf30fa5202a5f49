//! The shape of a back-off, and one sequence of delays of that shape.

use std::time::Duration;

use rand::Rng;
use rand::rngs::SmallRng;
use tokio::time::Instant;

use crate::clock;

/// The shape of a back-off: delays that grow from an initial one to a cap (client-go: `wait.Backoff`).
///
/// The default is client-go's for reflectors (RL-02): 800 ms, doubled up to 30 s, with a jitter of 1.
#[derive(Clone, Debug, PartialEq)]
pub struct Backoff {
    /// The first delay.
    pub initial: Duration,
    /// The ratio of a delay to the one before.
    pub factor: f64,
    /// The greatest random addition, as a fraction of the delay: with 1, a wait lies in `[d, 2d)`.
    pub jitter: f64,
    /// The greatest delay, without its random addition. The initial delay may be greater.
    pub cap: Duration,
}

/// A sequence of delays that restarts at the initial one after some time (client-go:
/// `Backoff.DelayWithReset`).
#[derive(Clone, Debug)]
pub struct ResettingBackoff {
    backoff: Backoff,
    reset_after: Duration,
    delay: Option<Duration>,
    started_at: Instant,
}

// === impl Backoff ===

impl Backoff {
    /// Returns a back-off that doubles from `initial` to `cap` without jitter.
    #[must_use]
    pub fn doubling(initial: Duration, cap: Duration) -> Self {
        Self { initial, factor: 2.0, jitter: 0.0, cap }
    }

    /// Returns the delay that follows a previous one, or the first one. It has no random addition.
    #[must_use]
    pub fn next(&self, previous: Option<Duration>) -> Duration {
        match previous {
            Some(previous) => clock::scaled(previous, self.factor).min(self.cap),
            None => self.initial,
        }
    }

    /// Returns a random addition to a delay, at most `delay × jitter`.
    #[must_use]
    pub fn random_addition(&self, delay: Duration, random: &mut impl Rng) -> Duration {
        clock::scaled(delay, self.jitter * random.random::<f64>())
    }
}

impl Default for Backoff {
    fn default() -> Self {
        Self { initial: Duration::from_millis(800), factor: 2.0, jitter: 1.0, cap: Duration::from_secs(30) }
    }
}

// === impl ResettingBackoff ===

impl ResettingBackoff {
    /// Starts a sequence. It restarts at the first step that is more than `reset_after` after its last start
    /// (RL-03, as in client-go since v0.36); with zero, at every step.
    ///
    /// The time counts from the start and not from the last step: with the latter, the delays would stay at
    /// the cap while steps fail now and then, and a caller would notice up to a minute late that the failures
    /// have ended.
    #[must_use]
    pub fn new(backoff: Backoff, reset_after: Duration) -> Self {
        Self { backoff, reset_after, delay: None, started_at: Instant::now() }
    }

    /// Returns the next delay, with its random addition. Does not wait.
    pub fn step(&mut self, random: &mut SmallRng) -> Duration {
        let now = Instant::now();
        if now - self.started_at > self.reset_after || self.reset_after.is_zero() {
            self.delay = None;
            self.started_at = now;
        }
        let delay = self.backoff.next(self.delay);
        self.delay = Some(delay);
        delay.saturating_add(self.backoff.random_addition(delay, random))
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn delays_double_to_the_cap_with_jitter_rl_02() {
        let mut random = SmallRng::seed_from_u64(1);
        let mut backoff = ResettingBackoff::new(Backoff::default(), Duration::MAX);
        for millis in [800, 1600, 3200, 6400, 12_800, 25_600, 30_000, 30_000] {
            let delay = Duration::from_millis(millis);
            let wait = backoff.step(&mut random);
            assert!(delay <= wait && wait < 2 * delay, "{wait:?} for {delay:?}");
            tokio::time::advance(wait).await;
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_sequence_restarts_two_minutes_after_its_start_also_during_an_outage_rl_03() {
        let mut random = SmallRng::seed_from_u64(1);
        let shape = Backoff { jitter: 0.0, ..Backoff::default() };
        let mut backoff = ResettingBackoff::new(shape, Duration::from_secs(120));
        for _ in 0..3 {
            let begun_at = Instant::now();
            let mut waits = Vec::new();
            while begun_at.elapsed() <= Duration::from_secs(120) {
                let wait = backoff.step(&mut random);
                waits.push(wait.as_millis());
                tokio::time::advance(wait).await;
            }
            assert_eq!(waits, [800, 1600, 3200, 6400, 12_800, 25_600, 30_000, 30_000, 30_000]);
        }
        // An hour without failures changes nothing.
        tokio::time::advance(Duration::from_secs(3600)).await;
        assert_eq!(backoff.step(&mut random).as_millis(), 800);
    }

    // Conformance: B.4
    #[tokio::test(start_paused = true)]
    async fn delay_with_reset_rl_03() {
        let mut random = SmallRng::seed_from_u64(1);
        let second = Duration::from_secs(1);
        let shape = Backoff::doubling(second, 10 * second);
        let mut backoff = ResettingBackoff::new(shape.clone(), 60 * second);
        for expected in [1, 2, 4, 8, 10, 10, 10] {
            assert_eq!(backoff.step(&mut random), expected * second);
            tokio::time::advance(second).await;
        }
        tokio::time::advance(60 * second).await;
        assert_eq!(backoff.step(&mut random), second, "restarted");
        assert_eq!(backoff.step(&mut random), 2 * second);

        let mut backoff = ResettingBackoff::new(shape.clone(), Duration::ZERO);
        for _ in 0..5 {
            assert_eq!(backoff.step(&mut random), second, "always the initial delay");
        }

        let jitter = 0.5;
        let mut backoff = ResettingBackoff::new(Backoff { jitter, ..shape.clone() }, 60 * second);
        for expected in [1, 2, 4, 8, 10, 10] {
            let (wait, delay) = (backoff.step(&mut random), expected * second);
            assert!((delay..=delay.mul_f64(1.0 + jitter)).contains(&wait), "{wait:?}");
        }

        let mut constant = ResettingBackoff::new(Backoff { factor: 1.0, ..shape }, 60 * second);
        for _ in 0..5 {
            assert_eq!(constant.step(&mut random), second);
        }
    }

    // Conformance: G.24
    #[tokio::test(start_paused = true)]
    async fn the_old_and_the_new_reset_rule_differ_over_an_outage_as_in_client_go_rl_03() {
        const OUTAGE: Duration = Duration::from_secs(600);
        // Up to v0.35 the time counted from the last call, which is never two minutes ago here.
        let rules = [Duration::from_secs(120), Duration::MAX];
        let (mut n_tries, mut longest) = (rules.map(|_| 0), rules.map(|_| 0.0));
        for (idx, reset_after) in rules.into_iter().enumerate() {
            // The waits are random: take means over many outages.
            for seed in 0..200 {
                let mut random = SmallRng::seed_from_u64(seed);
                let begun_at = Instant::now();
                let mut backoff = ResettingBackoff::new(Backoff::default(), reset_after);
                while begun_at.elapsed() < OUTAGE {
                    n_tries[idx] += 1;
                    tokio::time::advance(backoff.step(&mut random)).await;
                }
                longest[idx] += (begun_at.elapsed() - OUTAGE).as_secs_f64();
            }
        }
        let [now, before] = n_tries.map(|n_tries| n_tries / 200);
        assert!((28..=36).contains(&now) && (17..=20).contains(&before), "{now} and {before} tries");
        let [now, before] = longest.map(|seconds| seconds / 200.0);
        assert!(now < before, "{now} and {before} s until the end of the outage is noticed");
    }
}

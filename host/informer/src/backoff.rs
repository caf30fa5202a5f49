//! How long to wait before the next try, growing from try to try.

use std::time::Duration;

use rand::Rng;
use rand::rngs::SmallRng;
use tokio::time::Instant;

use crate::clock;

/// The shape of a [`Backoff`]. The default is client-go's for reflectors (RL-02).
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// The first delay.
    pub initial: Duration,
    /// What each delay is multiplied by to give the next.
    pub factor: f64,
    /// How much is added at random at most, as a part of the delay: with 1, a wait lies anywhere in `[d, 2d)`.
    pub jitter: f64,
    /// The greatest delay, before the random part is added.
    pub cap: Duration,
    /// Begins again at `initial` when this much time has passed since it did so last (RL-03, as client-go since v0.36). If that counted
    /// from the last call, waits would stay at the cap for as long as anything fails now and then, and it would take up to a minute to
    /// notice that nothing does any more. Zero: at every call.
    pub reset_after: Duration,
}

/// Gives one delay after another.
#[derive(Debug)]
pub struct Backoff {
    config: Config,
    delay: Duration,
    begun_at: Instant,
}

// === impl Config ===

impl Default for Config {
    fn default() -> Self {
        Self {
            initial: Duration::from_millis(800),
            factor: 2.0,
            jitter: 1.0,
            cap: Duration::from_secs(30),
            reset_after: Duration::from_secs(120),
        }
    }
}

// === impl Backoff ===

impl Backoff {
    /// Begins at the initial delay.
    pub fn new(config: Config) -> Self {
        let delay = config.initial;
        Self { config, delay, begun_at: Instant::now() }
    }

    /// Returns how long to wait this time. Does not wait itself.
    pub fn step(&mut self, random: &mut SmallRng) -> Duration {
        let now = Instant::now();
        let reset_after = self.config.reset_after;
        if now - self.begun_at > reset_after || reset_after.is_zero() {
            self.delay = self.config.initial;
            self.begun_at = now;
        }
        let delay = self.delay;
        self.delay = clock::scaled(delay, self.config.factor).min(self.config.cap);
        delay.saturating_add(clock::scaled(delay, self.config.jitter * random.random::<f64>()))
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn doubles_to_the_cap_with_jitter_rl_02() {
        let mut random = SmallRng::seed_from_u64(1);
        let mut backoff = Backoff::new(Config { reset_after: Duration::MAX, ..Config::default() });
        for millis in [800, 1600, 3200, 6400, 12_800, 25_600, 30_000, 30_000] {
            let delay = Duration::from_millis(millis);
            let wait = backoff.step(&mut random);
            assert!(delay <= wait && wait < 2 * delay, "{wait:?} for {delay:?}");
            tokio::time::advance(wait).await;
        }
    }

    #[tokio::test(start_paused = true)]
    async fn begins_again_two_minutes_after_it_began_also_within_an_outage_rl_03() {
        let mut random = SmallRng::seed_from_u64(1);
        let mut backoff = Backoff::new(Config { jitter: 0.0, ..Config::default() });
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
        // Nor does it matter that nothing was wrong in between.
        tokio::time::advance(Duration::from_secs(3600)).await;
        assert_eq!(backoff.step(&mut random).as_millis(), 800);
    }

    // Conformance: B.4
    #[tokio::test(start_paused = true)]
    async fn backoff_delay_with_reset() {
        let mut random = SmallRng::seed_from_u64(1);
        let second = Duration::from_secs(1);
        let config =
            Config { initial: second, factor: 2.0, jitter: 0.0, cap: 10 * second, reset_after: 60 * second };
        let mut backoff = Backoff::new(config.clone());
        for expected in [1, 2, 4, 8, 10, 10, 10] {
            assert_eq!(backoff.step(&mut random), expected * second);
            tokio::time::advance(second).await;
        }
        tokio::time::advance(60 * second).await;
        assert_eq!(backoff.step(&mut random), second, "begun again");
        assert_eq!(backoff.step(&mut random), 2 * second);

        let mut backoff = Backoff::new(Config { reset_after: Duration::ZERO, ..config.clone() });
        for _ in 0..5 {
            assert_eq!(backoff.step(&mut random), second, "always the first");
        }

        let jitter = 0.5;
        let mut backoff = Backoff::new(Config { jitter, ..config.clone() });
        for expected in [1, 2, 4, 8, 10, 10] {
            let (wait, delay) = (backoff.step(&mut random), expected * second);
            assert!((delay..=delay.mul_f64(1.0 + jitter)).contains(&wait), "{wait:?}");
        }

        let mut constant = Backoff::new(Config { factor: 1.0, ..config });
        for _ in 0..5 {
            assert_eq!(constant.step(&mut random), second);
        }
    }

    // Conformance: G.24
    #[tokio::test(start_paused = true)]
    async fn over_an_outage_the_two_rules_for_beginning_again_differ_as_in_client_go_rl_03() {
        const OUTAGE: Duration = Duration::from_secs(600);
        // Up to v0.35 the last call counted, and never was two minutes ago.
        let rules = [Duration::from_secs(120), Duration::MAX];
        let (mut n_tries, mut longest) = (rules.map(|_| 0), rules.map(|_| 0.0));
        for (idx, reset_after) in rules.into_iter().enumerate() {
            // Means over many outages, since the waits are random.
            for seed in 0..200 {
                let mut random = SmallRng::seed_from_u64(seed);
                let begun_at = Instant::now();
                let mut backoff = Backoff::new(Config { reset_after, ..Config::default() });
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
        assert!(now < before, "{now} and {before} s until it is noticed that all is well");
    }
}

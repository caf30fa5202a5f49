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
    /// Begins again at `initial` when this much time has passed since the last call (RL-03, where we deviate: it is the
    /// last call that counts, so that an outage is not interrupted by bursts of quick retries). Zero: at every call.
    pub reset_after: Duration,
}

/// Gives one delay after another.
#[derive(Debug)]
pub struct Backoff {
    config: Config,
    delay: Duration,
    last_call: Option<Instant>,
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
        Self { config, delay, last_call: None }
    }

    /// Returns how long to wait this time. Does not wait itself.
    pub fn step(&mut self, random: &mut SmallRng) -> Duration {
        let now = Instant::now();
        let reset_after = self.config.reset_after;
        if self.last_call.is_some_and(|last_call| now - last_call > reset_after || reset_after.is_zero()) {
            self.delay = self.config.initial;
        }
        self.last_call = Some(now);
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
    async fn rl_02_doubles_to_the_cap_with_jitter() {
        let mut random = SmallRng::seed_from_u64(1);
        let mut backoff = Backoff::new(Config::default());
        for millis in [800, 1600, 3200, 6400, 12_800, 25_600, 30_000, 30_000] {
            let delay = Duration::from_millis(millis);
            let wait = backoff.step(&mut random);
            assert!(delay <= wait && wait < 2 * delay, "{wait:?} for {delay:?}");
            tokio::time::advance(wait).await;
        }
    }

    #[tokio::test(start_paused = true)]
    async fn rl_03_resets_two_minutes_after_the_last_call() {
        let mut random = SmallRng::seed_from_u64(1);
        let mut backoff = Backoff::new(Config { jitter: 0.0, ..Config::default() });
        let mut step = || backoff.step(&mut random).as_millis();
        assert_eq!(step(), 800);
        // An outage of many minutes: never more than two minutes between two calls.
        for expected in [1600, 3200, 6400, 12_800, 25_600, 30_000, 30_000] {
            tokio::time::advance(Duration::from_secs(120)).await;
            assert_eq!(step(), expected);
        }
        tokio::time::advance(Duration::from_millis(120_001)).await;
        assert_eq!(step(), 800);
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
    async fn rl_03_an_outage_sees_fewer_tries_than_under_the_other_rule() {
        const OUTAGE: Duration = Duration::from_secs(600);
        // client-go's rule since v0.36: from the beginning again 2 min after the last reset.
        let resets = [Duration::from_secs(120), Duration::MAX];
        let mut n_tries = resets.map(|_| 0);
        for (n_tries, reset) in n_tries.iter_mut().zip(resets) {
            // Means over many outages, since the waits are random.
            for seed in 0..100 {
                let mut random = SmallRng::seed_from_u64(seed);
                let (begun_at, mut reset_at) = (Instant::now(), Instant::now());
                let mut backoff = Backoff::new(Config::default());
                while begun_at.elapsed() < OUTAGE {
                    if reset_at.elapsed() > reset {
                        reset_at = Instant::now();
                        backoff = Backoff::new(Config::default());
                    }
                    *n_tries += 1;
                    tokio::time::advance(backoff.step(&mut random)).await;
                }
            }
        }
        let [theirs, ours] = n_tries.map(|n_tries| n_tries / 100);
        assert!((17..=20).contains(&ours) && (28..=36).contains(&theirs), "{ours} and {theirs} tries");
    }
}

//! How long to wait before the next try, growing from try to try.

use std::time::Duration;

use rand::Rng;
use rand::rngs::SmallRng;
use tokio::time::Instant;

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
    /// last call that counts, so that an outage is not interrupted by bursts of quick retries).
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
        if self.last_call.is_some_and(|last_call| now - last_call > self.config.reset_after) {
            self.delay = self.config.initial;
        }
        self.last_call = Some(now);
        let delay = self.delay;
        self.delay = delay.mul_f64(self.config.factor).min(self.config.cap);
        delay + delay.mul_f64(self.config.jitter * random.random::<f64>())
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
}

//! The values that the server makes itself: times, uids, and the suffixes of generated names.

use jiff::{SignedDuration, Timestamp};
use parking_lot::Mutex;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use std::fmt;
use std::sync::Arc;
use std::time::SystemTime;

pub(crate) const SUFFIX_LENGTH: usize = 5;

/// The letters of generated names; without vowels they form no words.
const SUFFIX_LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";

/// The time of day of a server.
#[derive(Clone)]
pub struct Clock(Arc<dyn Fn() -> SystemTime + Send + Sync>);

/// Makes values. One for each server.
#[derive(Debug)]
pub(crate) struct Generated {
    clock: Clock,
    random: Mutex<StdRng>,
}

// === impl Clock ===

impl Clock {
    /// Returns the clock of the machine.
    #[must_use]
    pub fn system() -> Self {
        Self::controlled(SystemTime::now)
    }

    /// Returns a clock that the caller controls.
    #[must_use]
    pub fn controlled(read: impl Fn() -> SystemTime + Send + Sync + 'static) -> Self {
        Self(Arc::new(read))
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Clock")
    }
}

// === impl Generated ===

impl Generated {
    /// Returns a source of values. With a seed the uids and suffixes are the same in each run.
    pub(crate) fn new(clock: Clock, seed: Option<u64>) -> Self {
        let random = match seed {
            Some(seed) => StdRng::seed_from_u64(seed),
            None => StdRng::from_rng(&mut rand::rng()),
        };
        Self { clock, random: Mutex::new(random) }
    }

    /// Returns the current time in Kubernetes' format, in whole seconds.
    pub(crate) fn now(&self) -> String {
        self.in_seconds(0)
    }

    /// Returns the time in so many seconds.
    pub(crate) fn in_seconds(&self, seconds: i64) -> String {
        let now = Timestamp::try_from((self.clock.0)()).unwrap_or(Timestamp::MAX);
        let then = now.checked_add(SignedDuration::from_secs(seconds)).unwrap_or(Timestamp::MAX);
        then.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
    }

    pub(crate) fn uid(&self) -> String {
        let mut bytes = [0; 16];
        self.random.lock().fill(&mut bytes);
        uuid::Builder::from_random_bytes(bytes).into_uuid().to_string()
    }

    /// Returns what the server appends to `generateName`.
    pub(crate) fn suffix(&self) -> String {
        let mut random = self.random.lock();
        (0..SUFFIX_LENGTH)
            .map(|_| char::from(SUFFIX_LETTERS[random.random_range(0..SUFFIX_LETTERS.len())]))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_seed_gives_the_same_values_in_each_run() {
        let make = |seed| {
            let generated = Generated::new(Clock::system(), seed);
            [generated.uid(), generated.uid(), generated.suffix()]
        };
        assert_eq!(make(Some(1)), make(Some(1)));
        assert_ne!(make(Some(1)), make(Some(2)));
        assert_ne!(make(None), make(None));
    }

    #[test]
    fn times_are_those_of_the_clock() {
        let clock = Clock::controlled(|| SystemTime::UNIX_EPOCH + Duration::from_secs(90));
        let generated = Generated::new(clock, None);
        assert_eq!(generated.now(), "1970-01-01T00:01:30Z");
        assert_eq!(generated.in_seconds(-30), "1970-01-01T00:01:00Z");
        assert_eq!(generated.in_seconds(i64::MAX), "9999-12-30T22:00:00Z");
    }
}

//! The time of day of a case.

use std::time::{Duration, SystemTime};

use parking_lot::Mutex;
use tokio::time::Instant;

/// Stands still until the plugin serves, and moves with the runtime's clock from then on, in whole seconds.
///
/// Each step takes some milliseconds of the runtime's time, until nothing happens any more. They are not
/// shown, so that what a plugin computes from the time is a round value. A timer is never early: the time
/// that is shown is not ahead of the runtime's.
#[derive(Debug)]
pub(crate) struct CaseClock {
    start: SystemTime,
    began: Mutex<Option<Instant>>,
}

// === impl CaseClock ===

impl CaseClock {
    pub(crate) fn new(start: SystemTime) -> Self {
        Self { start, began: Mutex::default() }
    }

    /// The plugin serves: time passes from now on. The first call counts.
    pub(crate) fn begin(&self) {
        self.began.lock().get_or_insert_with(Instant::now);
    }

    pub(crate) fn now(&self) -> SystemTime {
        let passed = self.began.lock().map(|began| began.elapsed()).unwrap_or_default();
        self.start + Duration::from_secs(passed.as_secs())
    }
}

#[cfg(test)]
mod tests {
    use std::time::UNIX_EPOCH;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn time_passes_from_the_begin_on() {
        let clock = CaseClock::new(UNIX_EPOCH);
        tokio::time::advance(Duration::from_secs(5)).await;
        assert_eq!(clock.now(), UNIX_EPOCH);
        clock.begin();
        tokio::time::advance(Duration::from_millis(7_020)).await;
        clock.begin();
        assert_eq!(clock.now(), UNIX_EPOCH + Duration::from_secs(7));
    }
}

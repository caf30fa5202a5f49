//! The time of day of a case.

use std::time::SystemTime;

use parking_lot::Mutex;
use tokio::time::Instant;

/// Stands still until the plugin serves, and moves with the runtime's clock from then on.
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
    pub(crate) fn begin(&self) -> Instant {
        *self.began.lock().get_or_insert_with(Instant::now)
    }

    pub(crate) fn now(&self) -> SystemTime {
        let passed = self.began.lock().map(|began| began.elapsed()).unwrap_or_default();
        self.start + passed
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn time_passes_from_the_begin_on() {
        let clock = CaseClock::new(UNIX_EPOCH);
        tokio::time::advance(Duration::from_secs(5)).await;
        assert_eq!(clock.now(), UNIX_EPOCH);
        clock.begin();
        tokio::time::advance(Duration::from_secs(7)).await;
        clock.begin();
        assert_eq!(clock.now(), UNIX_EPOCH + Duration::from_secs(7));
    }
}

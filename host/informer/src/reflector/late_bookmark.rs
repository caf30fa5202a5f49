//! Complains while the end of the initial events does not come (WL-08).

use std::pin::pin;
use std::time::Duration;

use tokio::time::{Instant, Interval, MissedTickBehavior};

/// How often it complains.
const PERIOD: Duration = Duration::from_secs(10);

/// Waits for the bookmark that ends the initial events; gone when it has come.
#[derive(Debug)]
pub(super) struct LateBookmark {
    interval: Interval,
    begun_at: Instant,
    last_event_at: Option<Instant>,
}

// === impl LateBookmark ===

impl LateBookmark {
    pub(super) fn new() -> Self {
        let now = Instant::now();
        let mut interval = tokio::time::interval_at(now + PERIOD, PERIOD);
        interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self { interval, begun_at: now, last_event_at: None }
    }

    /// An event came, which was not that bookmark.
    pub(super) fn event_came(&mut self) {
        self.last_event_at = Some(Instant::now());
    }

    /// Waits for the future and logs a warning each period until it is there.
    pub(super) async fn warn_until<T>(&mut self, next: impl Future<Output = T>) -> T {
        let mut next = pin!(next);
        loop {
            tokio::select! {
                biased;
                next = &mut next => return next,
                _ = self.interval.tick() => tracing::warn!("{}", self.complaint()),
            }
        }
    }

    fn complaint(&self) -> String {
        let lateness = match self.last_event_at {
            None => format!("no events received for {}s", self.begun_at.elapsed().as_secs()),
            Some(at) => format!("received last event {}s ago", at.elapsed().as_secs()),
        };
        format!("the bookmark that ends the initial events has not come yet: {lateness}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Upstream's variant that never warns is here none at all.
    // Conformance: 18.2
    #[tokio::test(start_paused = true)]
    async fn says_how_long_nothing_came_wl_08() {
        let mut late = LateBookmark::new();
        let second = Duration::from_secs(1);
        for elapsed in ["1s", "2s"] {
            tokio::time::advance(second).await;
            assert!(late.complaint().ends_with(&format!("no events received for {elapsed}")));
        }
        late.event_came();
        for elapsed in ["1s", "2s"] {
            tokio::time::advance(second).await;
            assert!(late.complaint().ends_with(&format!("received last event {elapsed} ago")));
        }
        // What has come is taken before anybody complains, however late it is.
        tokio::time::advance(PERIOD).await;
        assert_eq!(late.warn_until(async { "the bookmark" }).await, "the bookmark");
    }
}

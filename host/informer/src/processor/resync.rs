//! Decides when a listener is resynced.

use std::time::Duration;

use oarlock_flow_control::clock;
use tokio::time::Instant;

/// No listener is resynced more often than this.
const MIN_PERIOD: Duration = Duration::from_secs(1);

/// The resync of one listener.
#[derive(Clone, Debug)]
pub(super) struct ResyncTimer {
    requested: Duration,
    next: Instant,
    /// The listener receives updates that change nothing. A new listener does until the first tick.
    is_resyncing: bool,
}

/// Returns the period that is granted for a requested one; zero means never.
pub(super) fn requested(period: Duration) -> Duration {
    if period.is_zero() { period } else { period.max(MIN_PERIOD) }
}

/// Returns how often a listener is resynced if the informer checks every `check_period`.
fn effective(requested: Duration, check_period: Duration) -> Duration {
    if requested.is_zero() || check_period.is_zero() { Duration::ZERO } else { requested.max(check_period) }
}

// === impl ResyncTimer ===

impl ResyncTimer {
    pub(super) fn new(requested: Duration, check_period: Duration, now: Instant) -> Self {
        Self { requested, next: clock::after(now, effective(requested, check_period)), is_resyncing: true }
    }

    pub(super) fn is_resyncing(&self) -> bool {
        self.is_resyncing
    }

    /// Decides whether the listener takes part in this resync.
    pub(super) fn tick(&mut self, check_period: Duration, now: Instant) -> bool {
        let period = effective(self.requested, check_period);
        self.is_resyncing = !period.is_zero() && now >= self.next;
        if self.is_resyncing {
            self.next = clock::after(now, period);
        }
        self.is_resyncing
    }
}

//! The clocks of guests, in whole milliseconds. With finer clocks a guest could measure how long the host
//! takes to answer.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use wasmtime_wasi::{HostMonotonicClock, HostWallClock};

use crate::engine::nanos;

const RESOLUTION: Duration = Duration::from_millis(1);

/// The start of the monotonic clock. Go's runtime treats zero as a clock that does not work.
const BEGIN: Duration = Duration::from_secs(1);

/// The time of day.
pub(super) struct WallClock;

/// The time since the creation of the instance.
pub(super) struct MonotonicClock(pub(super) Instant);

/// Returns a time in whole milliseconds.
pub(crate) fn coarse(time: Duration) -> Duration {
    Duration::new(time.as_secs(), time.subsec_millis() * 1_000_000)
}

/// Returns what the monotonic clock shows so long after the creation of the instance.
pub(crate) fn monotonic(elapsed: Duration) -> u64 {
    nanos(BEGIN + coarse(elapsed))
}

// === impl WallClock, MonotonicClock ===

impl HostWallClock for WallClock {
    fn resolution(&self) -> Duration {
        RESOLUTION
    }

    fn now(&self) -> Duration {
        // A time before 1970 is certainly wrong.
        coarse(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default())
    }
}

impl HostMonotonicClock for MonotonicClock {
    fn resolution(&self) -> u64 {
        nanos(RESOLUTION)
    }

    fn now(&self) -> u64 {
        monotonic(self.0.elapsed())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_clock_returns_whole_milliseconds() {
        let monotonic = MonotonicClock(Instant::now());
        assert!(
            super::monotonic(Duration::ZERO) > 0,
            "Go's runtime treats zero as a clock that does not work"
        );
        for _ in 0..1000 {
            assert_eq!(monotonic.now() % 1_000_000, 0);
            assert_eq!(WallClock.now().subsec_nanos() % 1_000_000, 0);
        }
        assert_eq!((monotonic.resolution(), WallClock.resolution()), (1_000_000, RESOLUTION));
    }
}

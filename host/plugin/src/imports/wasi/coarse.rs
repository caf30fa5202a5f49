//! The clocks that guests get, at one millisecond: finer ones would let a guest time what the host does for it.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use wasmtime_wasi::{HostMonotonicClock, HostWallClock};

const RESOLUTION: Duration = Duration::from_millis(1);

/// What the monotonic clock begins at: Go's runtime takes zero for a clock that does not work.
const BEGIN: Duration = Duration::from_secs(1);

/// The time of day.
pub(super) struct WallClock;

/// Time since the instance was made.
pub(super) struct MonotonicClock(pub(super) Instant);

fn coarse(time: Duration) -> Duration {
    Duration::new(time.as_secs(), time.subsec_millis() * 1_000_000)
}

// === impl WallClock, MonotonicClock ===

impl HostWallClock for WallClock {
    fn resolution(&self) -> Duration {
        RESOLUTION
    }

    fn now(&self) -> Duration {
        // A clock before 1970 is wrong anyway.
        coarse(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default())
    }
}

impl HostMonotonicClock for MonotonicClock {
    fn resolution(&self) -> u64 {
        nanoseconds(RESOLUTION)
    }

    fn now(&self) -> u64 {
        nanoseconds(BEGIN + coarse(self.0.elapsed()))
    }
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_clock_tells_more_than_milliseconds() {
        let monotonic = MonotonicClock(Instant::now());
        assert!(monotonic.now() > 0, "Go's runtime takes zero for a clock that does not work");
        for _ in 0..1000 {
            assert_eq!(monotonic.now() % 1_000_000, 0);
            assert_eq!(WallClock.now().subsec_nanos() % 1_000_000, 0);
        }
        assert_eq!((monotonic.resolution(), WallClock.resolution()), (1_000_000, RESOLUTION));
    }
}

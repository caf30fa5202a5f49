//! The time, in whole milliseconds.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::imports::clock;

/// Returns the current time.
#[must_use]
pub fn now() -> SystemTime {
    let now = clock::now();
    UNIX_EPOCH + Duration::new(now.seconds.into(), now.nanoseconds)
}

/// Returns the time since this instance was created. Never decreases.
#[must_use]
pub fn elapsed() -> Duration {
    Duration::try_from_secs_f64(clock::elapsed_ms() / 1_000.0).unwrap_or_default()
}

//! `clock`: the time, in whole milliseconds.
//!
//! With a finer clock a guest could measure how long the host takes to answer, and so learn of data that it
//! may not read.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::{bindings::oarlock::plugin::clock::Host, contract::Datetime, state::StoreState};

impl Host for StoreState {
    fn now(&mut self) -> Datetime {
        datetime(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default())
    }

    fn elapsed_ms(&mut self) -> f64 {
        whole_milliseconds(self.made.elapsed())
    }
}

/// Times before 1970 and after 2106 do not fit; they become the first and the last time that does.
pub(crate) fn datetime(since_1970: Duration) -> Datetime {
    Datetime {
        seconds: u32::try_from(since_1970.as_secs()).unwrap_or(u32::MAX),
        nanoseconds: since_1970.subsec_millis() * 1_000_000,
    }
}

pub(crate) fn whole_milliseconds(elapsed: Duration) -> f64 {
    // Exact for some 285,000 years.
    elapsed.as_millis() as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_truncated_to_milliseconds() {
        for (micros, shown) in
            [(0, 0.0), (999, 0.0), (1_000, 1.0), (1_999, 1.0), (86_400_000_123, 86_400_000.0)]
        {
            assert_eq!(whole_milliseconds(Duration::from_micros(micros)), shown);
        }
    }
}

//! `clock`: the time.

use std::time::{SystemTime, UNIX_EPOCH};

use crate::{bindings::oarlock::plugin::clock::Host, contract::Datetime, state::State};

impl Host for State {
    fn now(&mut self) -> Datetime {
        // A clock before 1970 is as wrong as one after 2106; both get the nearest end.
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Datetime {
            seconds: u32::try_from(since.as_secs()).unwrap_or(u32::MAX),
            nanoseconds: since.subsec_nanos(),
        }
    }

    fn elapsed_ms(&mut self) -> f64 {
        self.made.elapsed().as_secs_f64() * 1e3
    }
}

//! When a line was made.

use std::fmt;

use serde::{Serialize, Serializer};

/// A moment of the wall clock, written as RFC 3339 in UTC with microseconds.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct Timestamp(jiff::Timestamp);

// === impl Timestamp ===

impl Timestamp {
    /// The moment that is now.
    #[must_use]
    pub fn now() -> Self {
        Self(jiff::Timestamp::now())
    }

    /// The moment so many microseconds after the epoch; the epoch itself if there is no such moment.
    #[must_use]
    pub fn from_microseconds(microseconds: i64) -> Self {
        Self(jiff::Timestamp::from_microsecond(microseconds).unwrap_or(jiff::Timestamp::UNIX_EPOCH))
    }

    /// The time of day alone, with milliseconds, for people.
    pub(super) fn time_of_day(self) -> impl fmt::Display {
        self.0.strftime("%H:%M:%S%.3f").to_string()
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.6}", self.0)
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

//! The time of a line.

use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// A time of the wall clock. Displays as RFC 3339 in UTC with microseconds.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct Timestamp(jiff::Timestamp);

// === impl Timestamp ===

impl Timestamp {
    /// Returns the current time.
    #[must_use]
    pub fn now() -> Self {
        Self(jiff::Timestamp::now())
    }

    /// Returns the time so many microseconds after the Unix epoch; the epoch itself if the number is out of
    /// range.
    #[must_use]
    pub fn from_microseconds(microseconds: i64) -> Self {
        Self(jiff::Timestamp::from_microsecond(microseconds).unwrap_or(jiff::Timestamp::UNIX_EPOCH))
    }

    /// Returns the point in time.
    pub(crate) fn instant(self) -> jiff::Timestamp {
        self.0
    }

    /// Returns how long ago it was; nothing for a time in the future.
    #[must_use]
    pub fn elapsed(self) -> Duration {
        jiff::Timestamp::now().duration_since(self.0).try_into().unwrap_or_default()
    }

    /// Returns the time this long before; the earliest one that there is if it is out of range.
    pub(crate) fn before(self, duration: Duration) -> Self {
        Self(self.0.checked_sub(duration).unwrap_or(jiff::Timestamp::MIN))
    }

    /// Returns the time of day with milliseconds, for people.
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

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Cow::<str>::deserialize(deserializer)?;
        text.parse().map(Self).map_err(de::Error::custom)
    }
}

//! The times of a schedule.

use std::sync::Arc;
use std::time::Duration;

use croner::Cron;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use oarlock_plugin::contract::{self, WallTimes};

/// A cron expression whose next time is further away is refused. The 29th of February comes within 8 years.
const HORIZON: SignedDuration = SignedDuration::from_hours(8 * 366 * 24);

/// The names that a cron expression may contain.
const NAMES: [&str; 19] = [
    "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec", "sun", "mon", "tue",
    "wed", "thu", "fri", "sat",
];

/// When a schedule fires.
#[derive(Clone, Debug)]
pub(super) enum Trigger {
    Every(Duration),
    At(Arc<At>),
}

/// Times of the wall clock.
#[derive(Debug)]
pub(super) struct At {
    cron: Cron,
    zone: TimeZone,
}

/// Why a trigger is refused.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// The text is not a cron expression of five fields.
    #[error(
        "{cron:?} is not a cron expression of five fields (minute, hour, day of the month, month, day of the week), such as \"0 6 * * mon-fri\": {reason}"
    )]
    Cron {
        /// The text.
        cron: String,
        /// The defect.
        reason: String,
    },
    /// The time zone is not known.
    #[error("{0:?} is not a time zone of the IANA database, such as Europe/Berlin")]
    TimeZone(String),
    /// There is no such time in the next years.
    #[error("{0:?} has no time in the next eight years")]
    Never(String),
}

// === impl Trigger ===

impl Trigger {
    pub(super) fn of(declared: &contract::Trigger, now: Timestamp) -> Result<Self, Error> {
        match declared {
            contract::Trigger::EverySeconds(seconds) => {
                Ok(Self::Every(Duration::from_secs(u64::from((*seconds).max(1)))))
            }
            contract::Trigger::At(times) => At::of(times, now).map(|it| Self::At(Arc::new(it))),
        }
    }
}

// === impl At ===

impl At {
    fn of(WallTimes { cron, time_zone }: &WallTimes, now: Timestamp) -> Result<Self, Error> {
        let refuse = |reason: String| Error::Cron { cron: cron.clone(), reason };
        let n_fields = cron.split_ascii_whitespace().count();
        if n_fields != 5 {
            return Err(refuse(format!("it has {n_fields} fields")));
        }
        // The crate knows more than cron does, such as `L` and `#`.
        if let Some(other) = cron.chars().find(|c| !c.is_ascii_alphanumeric() && !" \t*,/-".contains(*c)) {
            return Err(refuse(format!("it contains {other:?}")));
        }
        let words = cron.split(|c: char| !c.is_ascii_alphabetic()).filter(|word| !word.is_empty());
        if let Some(word) = words.into_iter().find(|it| !NAMES.contains(&it.to_ascii_lowercase().as_str())) {
            return Err(refuse(format!("{word:?} is no month and no day of the week")));
        }
        let parsed: Cron = cron.parse().map_err(|error: croner::errors::CronError| {
            let reason = error.to_string();
            // "Component" is another word for a field in the text of the crate.
            refuse(reason.trim_start_matches("Component error: ").trim_end_matches('.').to_lowercase())
        })?;
        let zone = match time_zone.as_str() {
            "" => TimeZone::UTC,
            name => TimeZone::get(name).map_err(|_| Error::TimeZone(name.to_owned()))?,
        };
        let this = Self { cron: parsed, zone };
        match this.next(now) {
            Some(next) if next.duration_since(now) <= HORIZON => Ok(this),
            _ => Err(Error::Never(cron.clone())),
        }
    }

    /// Returns the first time after this one.
    pub(super) fn next(&self, after: Timestamp) -> Option<Timestamp> {
        let after = after.to_zoned(self.zone.clone());
        self.cron.find_next_occurrence(&after, false).ok().map(|next| next.timestamp())
    }
}

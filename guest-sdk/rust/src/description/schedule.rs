//! Schedules: times at which the host adds a key to the work queue.

use oarlock_sdk_bindings::exports::oarlock::plugin::metadata as wit;

use crate::{ObjectKey, Trigger, WallTimes, WorkKey};

/// One schedule; see [`every`] and [`at`]. Its key has the kind of its name, and an empty object.
#[derive(Clone, Debug)]
#[must_use]
pub struct Schedule(pub(crate) wit::Schedule);

// === impl Schedule ===

impl Schedule {
    fn new(name: &str, trigger: Trigger) -> Self {
        Self(wit::Schedule { name: name.to_owned(), trigger, at_start: false, key: None })
    }

    /// Has it also fire when the plugin starts on a host, which catches up on missed times.
    pub fn at_start(mut self) -> Self {
        self.0.at_start = true;
        self
    }

    /// Has it add the key of this kind and object.
    pub fn key(mut self, kind: &str, object: ObjectKey) -> Self {
        self.0.key = Some(WorkKey { kind: kind.to_owned(), object });
        self
    }
}

/// Returns a schedule that adds the key of its name every so many seconds.
///
/// ```
/// use oarlock_sdk::{Description, at, every};
///
/// let description = Description::new("reaper", "0.1.0")
///     .schedule(every("expire", 60))
///     .schedule(at("report", "0 6 * * mon-fri", "Europe/Berlin").at_start());
/// # drop(description);
/// ```
pub fn every(name: &str, seconds: u32) -> Schedule {
    Schedule::new(name, Trigger::EverySeconds(seconds))
}

/// Returns a schedule that adds the key of its name at the times of a cron expression, in a time zone of the
/// IANA database (empty for UTC).
pub fn at(name: &str, cron: &str, time_zone: &str) -> Schedule {
    let times = WallTimes { cron: cron.to_owned(), time_zone: time_zone.to_owned() };
    Schedule::new(name, Trigger::At(times))
}

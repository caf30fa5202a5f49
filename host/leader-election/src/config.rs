//! The durations of an election.

use std::time::Duration;

use crate::elector::JITTER;

/// The configuration of a candidate. It has no default on purpose; Kubernetes' components use 15 s, 10 s and
/// 2 s (LE-02).
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// The time that other candidates wait after the last change of the record before they take it. The
    /// record has whole seconds: fractions are cut off, and others may take a lease of less than one second
    /// at once (LE-11).
    pub lease_duration: Duration,
    /// The time that a leader tries to renew before it stops leading.
    pub renew_deadline: Duration,
    /// The time between two tries.
    pub retry_period: Duration,
    /// The longest time between two tries of a candidate that waits, so that it soon notices a release;
    /// `None` for client-go's, which is up to 2.2 times the retry period. Each try reads the record once.
    pub longest_wait: Option<Duration>,
    /// Releases the lease of a leader that is stopped, so that other candidates need not wait until it
    /// expires. Use it only if no work continues after the callback. A lease that was lost is not released:
    /// requests of the last leader may be under way, and others wait until it expires.
    pub release_on_cancel: bool,
}

/// The reason why a configuration is not valid.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum ConfigError {
    /// A lease could expire while its holder still tries to renew it.
    #[error(
        "leaseDuration must be greater than renewDeadline, but {lease_duration:?} is not greater than {renew_deadline:?}"
    )]
    LeaseTooShort {
        /// The lease duration.
        lease_duration: Duration,
        /// The renew deadline.
        renew_deadline: Duration,
    },
    /// The deadline leaves no time for a second try.
    #[error(
        "renewDeadline must be greater than 1.2 times retryPeriod, but {renew_deadline:?} is not greater than 1.2 × {retry_period:?}"
    )]
    DeadlineTooShort {
        /// The renew deadline.
        renew_deadline: Duration,
        /// The retry period.
        retry_period: Duration,
    },
    /// The duration is longer than the API can express.
    #[error("{0} must not be longer than 68 years")]
    TooLong(&'static str),
    /// The duration is zero.
    #[error("{0} must be greater than zero")]
    Zero(&'static str),
    /// The identity of the lock is empty.
    #[error("Lock identity is empty")]
    NoIdentity,
}

// === impl Config ===

impl Config {
    /// Checks the configuration (LE-01).
    ///
    /// # Errors
    ///
    /// When the durations do not fit together.
    pub fn check(&self) -> Result<(), ConfigError> {
        let Self { lease_duration, renew_deadline, retry_period, .. } = *self;
        for (duration, name) in [
            (lease_duration, "leaseDuration"),
            (renew_deadline, "renewDeadline"),
            (retry_period, "retryPeriod"),
            (self.longest_wait.unwrap_or(retry_period), "longestWait"),
        ] {
            if duration.is_zero() {
                return Err(ConfigError::Zero(name));
            }
            if i32::try_from(duration.as_secs()).is_err() {
                return Err(ConfigError::TooLong(name));
            }
        }
        if lease_duration <= renew_deadline {
            return Err(ConfigError::LeaseTooShort { lease_duration, renew_deadline });
        }
        if renew_deadline.as_secs_f64() <= JITTER * retry_period.as_secs_f64() {
            return Err(ConfigError::DeadlineTooShort { renew_deadline, retry_period });
        }
        Ok(())
    }

    /// Returns the time between the end of leadership and the moment from which other candidates may take the
    /// lease, if renewals fail: what the last leader sent before has so long to arrive.
    #[must_use]
    pub fn margin(&self) -> Duration {
        self.others_wait().saturating_sub(self.renew_deadline.min(self.relied_upon()))
    }

    /// Returns the time for which the holder relies on a renewal: a twentieth less than other candidates
    /// wait, since timers are late and clocks differ. A lease of less than a second protects from no other
    /// candidate; its holder uses the configured time.
    pub(crate) fn relied_upon(&self) -> Duration {
        let lasts = self.others_wait();
        lasts - lasts / 20
    }

    /// Returns the time that others wait after a renewal: the record has whole seconds.
    fn others_wait(&self) -> Duration {
        match Duration::from_secs(self.lease_duration.as_secs()) {
            Duration::ZERO => self.lease_duration,
            whole => whole,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(lease_duration: u64, renew_deadline: u64, retry_period: u64) -> Config {
        let [lease_duration, renew_deadline, retry_period] =
            [lease_duration, renew_deadline, retry_period].map(Duration::from_millis);
        Config { lease_duration, renew_deadline, retry_period, longest_wait: None, release_on_cancel: false }
    }

    #[test]
    fn the_margin_counts_from_the_whole_seconds_that_others_wait() {
        let margin = |lease, renew| config(lease, renew, 1).margin();
        assert_eq!(margin(15_000, 10_000), Duration::from_secs(5));
        assert_eq!(margin(15_900, 10_000), Duration::from_secs(5));
        // A deadline close to the lease: the holder relies on 19 of 20 parts.
        assert_eq!(margin(15_000, 14_999), Duration::from_millis(750));
        assert_eq!(margin(500, 400), Duration::from_millis(100));
    }

    #[test]
    fn the_durations_must_fit_together_le_01() {
        let error = |lease, renew, retry| config(lease, renew, retry).check().unwrap_err().to_string();
        assert_eq!(config(15_000, 10_000, 2_000).check(), Ok(()));
        assert_eq!(
            error(10_000, 10_000, 2_000),
            "leaseDuration must be greater than renewDeadline, but 10s is not greater than 10s"
        );
        assert_eq!(
            error(15_000, 2_400, 2_000),
            "renewDeadline must be greater than 1.2 times retryPeriod, but 2.4s is not greater than 1.2 × 2s"
        );
        assert_eq!(error(0, 0, 0), "leaseDuration must be greater than zero");
        assert_eq!(error(15_000, 0, 0), "renewDeadline must be greater than zero");
        assert_eq!(error(u64::MAX, 1, 1), "leaseDuration must not be longer than 68 years");
        assert_eq!(error(15_000, 10_000, 0), "retryPeriod must be greater than zero");
        let no_wait = Config { longest_wait: Some(Duration::ZERO), ..config(15_000, 10_000, 2_000) };
        assert_eq!(no_wait.check().unwrap_err().to_string(), "longestWait must be greater than zero");
    }
}

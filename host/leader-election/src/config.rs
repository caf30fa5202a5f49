//! How patient a candidate is.

use std::time::Duration;

use crate::elector::JITTER;

/// How a candidate behaves. Kubernetes' components use 15 s, 10 s and 2 s; there is no default on purpose (LE-02).
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// How long others wait after they last saw the record change before they take it. Written in whole seconds: what is
    /// beyond is cut off, and a lease of less than one may be taken at once (LE-11).
    pub lease_duration: Duration,
    /// How long a leader tries to renew before it gives up.
    pub renew_deadline: Duration,
    /// How long to wait between two tries.
    pub retry_period: Duration,
    /// Whether the lease is given back at the end, so that another need not wait for it to run out. Only for those whose
    /// work is over when the callback is.
    pub release_on_cancel: bool,
}

/// A configuration that cannot work.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum ConfigError {
    /// A lease could run out while its holder still tries.
    #[error(
        "leaseDuration must be greater than renewDeadline, but {lease_duration:?} is not greater than {renew_deadline:?}"
    )]
    LeaseTooShort {
        /// The lease.
        lease_duration: Duration,
        /// The deadline.
        renew_deadline: Duration,
    },
    /// There would not be a second try.
    #[error(
        "renewDeadline must be greater than 1.2 times retryPeriod, but {renew_deadline:?} is not greater than 1.2 × {retry_period:?}"
    )]
    DeadlineTooShort {
        /// The deadline.
        renew_deadline: Duration,
        /// Between two tries.
        retry_period: Duration,
    },
    /// More than the API can express.
    #[error("{0} must not be longer than 68 years")]
    TooLong(&'static str),
    /// A duration of nothing.
    #[error("{0} must be greater than zero")]
    Zero(&'static str),
    /// Nobody would know who leads.
    #[error("Lock identity is empty")]
    NoIdentity,
}

// === impl Config ===

impl Config {
    /// Finds out whether this can work (LE-01).
    pub fn check(&self) -> Result<(), ConfigError> {
        let Self { lease_duration, renew_deadline, retry_period, .. } = *self;
        for (duration, name) in [
            (lease_duration, "leaseDuration"),
            (renew_deadline, "renewDeadline"),
            (retry_period, "retryPeriod"),
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

    /// How long a renewed lease is relied upon: a twentieth less than others let it be, since timers are late and clocks
    /// differ. One of less than a second is no lease for others; then its holder goes by what it was told.
    pub(crate) fn relied_upon(&self) -> Duration {
        let lasts = match Duration::from_secs(self.lease_duration.as_secs()) {
            Duration::ZERO => self.lease_duration,
            whole => whole,
        };
        lasts - lasts / 20
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(lease_duration: u64, renew_deadline: u64, retry_period: u64) -> Config {
        let [lease_duration, renew_deadline, retry_period] =
            [lease_duration, renew_deadline, retry_period].map(Duration::from_millis);
        Config { lease_duration, renew_deadline, retry_period, release_on_cancel: false }
    }

    #[test]
    fn the_durations_must_leave_time_for_one_another_le_01() {
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
    }
}

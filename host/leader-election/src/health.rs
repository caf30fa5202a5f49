//! A health check for a leader whose renewal hangs.

use std::{sync::Arc, sync::OnceLock, time::Duration};

use crate::{LeaderElector, Lock};

/// This candidate still leads by its own state, but its lease has expired.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error(
    "failed election to renew leadership on lease: not renewed for {age:?}, although it lasts {lease_duration:?}"
)]
pub struct Unhealthy {
    /// The time since the last renewal.
    pub age: Duration,
    /// The lease duration.
    pub lease_duration: Duration,
}

/// A check that exists before the elector: it succeeds until then (LE-16).
pub struct HealthCheck {
    tolerance: Duration,
    elector: OnceLock<Box<Check>>,
}

/// [`LeaderElector::check`] for any lock.
type Check = dyn Fn(Duration) -> Result<(), Unhealthy> + Send + Sync;

// === impl HealthCheck ===

impl HealthCheck {
    /// Returns a check that fails this long after the lease has expired.
    #[must_use]
    pub fn new(tolerance: Duration) -> Self {
        Self { tolerance, elector: OnceLock::new() }
    }

    /// Sets the elector. Only the first call counts.
    pub fn wire<L: Lock + 'static>(&self, elector: Arc<LeaderElector<L>>) {
        let _ = self.elector.set(Box::new(move |tolerance| elector.check(tolerance)));
    }

    /// Checks the elector.
    ///
    /// # Errors
    ///
    /// When its renewal hangs.
    pub fn check(&self) -> Result<(), Unhealthy> {
        self.elector.get().map_or(Ok(()), |check| check(self.tolerance))
    }
}

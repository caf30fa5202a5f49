//! A leader that no longer renews, seen from outside.

use std::{sync::Arc, sync::OnceLock, time::Duration};

use crate::{LeaderElector, Lock};

/// We believe to lead, but our lease ran out and we have not noticed.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error(
    "failed election to renew leadership on lease: not renewed for {age:?}, although it lasts {lease_duration:?}"
)]
pub struct Unhealthy {
    /// How long ago the record last changed.
    pub age: Duration,
    /// How long it lasts.
    pub lease_duration: Duration,
}

/// A check that may be asked before there is an elector: until then all is well (LE-16).
pub struct HealthCheck {
    tolerance: Duration,
    elector: OnceLock<Box<Check>>,
}

/// [`LeaderElector::check`] of whatever kind of lock.
type Check = dyn Fn(Duration) -> Result<(), Unhealthy> + Send + Sync;

// === impl HealthCheck ===

impl HealthCheck {
    /// Makes a check that fails this much after the lease has run out.
    #[must_use]
    pub fn new(tolerance: Duration) -> Self {
        Self { tolerance, elector: OnceLock::new() }
    }

    /// Says whom to ask. Only the first one counts.
    pub fn wire<L: Lock + 'static>(&self, elector: Arc<LeaderElector<L>>) {
        let _ = self.elector.set(Box::new(move |tolerance| elector.check(tolerance)));
    }

    /// Asks.
    pub fn check(&self) -> Result<(), Unhealthy> {
        self.elector.get().map_or(Ok(()), |check| check(self.tolerance))
    }
}

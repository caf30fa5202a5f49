//! Remembers components that do not compile, so that they are not compiled again for each plugin and each
//! change of a file.

use std::{collections::HashMap, time::Duration};

use parking_lot::Mutex;
use tokio::time::Instant;

use crate::component::{Digest, Error};

/// The time for which a failure is remembered.
const REMEMBER: Duration = Duration::from_secs(600);

/// The number of failures that are remembered.
const MOST: usize = 256;

/// The components that did not compile.
#[derive(Debug, Default)]
pub(crate) struct Failures {
    failures: Mutex<HashMap<Digest, (Instant, Error)>>,
}

// === impl Failures ===

impl Failures {
    /// Remembers a failure, if the component caused it.
    pub(crate) fn remember(&self, component: Digest, error: &Error) {
        let is_its_fault = match error {
            // The total does not change while the host runs.
            Error::Compile(_) | Error::OverTotalMemory { .. } => true,
            // The elapsed time also depends on the load of the machine.
            Error::OverAllowance { what, .. } => *what != "time",
            _ => false,
        };
        if !is_its_fault {
            return;
        }
        let mut failures = self.failures.lock();
        failures.retain(|_, (at, _)| at.elapsed() < REMEMBER);
        if failures.len() >= MOST
            && let Some(oldest) = failures.iter().min_by_key(|(_, (at, _))| *at).map(|(digest, _)| *digest)
        {
            failures.remove(&oldest);
        }
        failures.insert(component, (Instant::now(), error.clone()));
    }

    /// Returns the remembered failure of a component as an error.
    pub(crate) fn recall(&self, component: &Digest) -> Result<(), Error> {
        match self.failures.lock().get(component) {
            Some((at, error)) if at.elapsed() < REMEMBER => Err(error.clone()),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_failed_compilation_is_remembered_for_ten_minutes() {
        let failures = Failures::default();
        let component = |n: usize| Digest::of(&n.to_le_bytes());
        failures.remember(component(0), &Error::Compile("bad".to_owned()));
        failures.remember(component(1), &Error::Compiler("missing".to_owned()));
        assert_eq!(failures.recall(&component(0)), Err(Error::Compile("bad".to_owned())));
        assert_eq!(failures.recall(&component(1)), Ok(()), "the component did not cause it");
        for n in 2..2 * MOST {
            failures.remember(component(n), &Error::Compile("bad".to_owned()));
        }
        assert_eq!(failures.failures.lock().len(), MOST);
        tokio::time::advance(REMEMBER).await;
        assert_eq!(failures.recall(&component(2 * MOST - 1)), Ok(()));
    }
}

//! Which components are known not to compile, so that they are not tried again for each plugin and each touch of a file.

use std::{collections::HashMap, time::Duration};

use parking_lot::Mutex;
use tokio::time::Instant;

use crate::component::{Digest, Error};

/// How long a failure is remembered.
const REMEMBER: Duration = Duration::from_secs(600);

/// How many are remembered.
const MOST: usize = 256;

/// The components that did not compile.
#[derive(Debug, Default)]
pub(crate) struct Failures {
    failures: Mutex<HashMap<Digest, (Instant, Error)>>,
}

// === impl Failures ===

impl Failures {
    /// Remembers a failure, if the component is to blame for it.
    pub(crate) fn remember(&self, component: Digest, error: &Error) {
        let is_to_blame = match error {
            Error::Compile(_) => true,
            // How long it took is not its doing alone.
            Error::OverAllowance { what, .. } => *what != "time",
            _ => false,
        };
        if !is_to_blame {
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

    /// Fails as the component did before, if it did.
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
    async fn a_component_that_does_not_compile_is_not_tried_again_for_a_while() {
        let failures = Failures::default();
        let component = |n: usize| Digest::of(&n.to_le_bytes());
        failures.remember(component(0), &Error::Compile("bad".to_owned()));
        failures.remember(component(1), &Error::Compiler("missing".to_owned()));
        assert_eq!(failures.recall(&component(0)), Err(Error::Compile("bad".to_owned())));
        assert_eq!(failures.recall(&component(1)), Ok(()), "it is not to blame");
        for n in 2..2 * MOST {
            failures.remember(component(n), &Error::Compile("bad".to_owned()));
        }
        assert_eq!(failures.failures.lock().len(), MOST);
        tokio::time::advance(REMEMBER).await;
        assert_eq!(failures.recall(&component(2 * MOST - 1)), Ok(()));
    }
}

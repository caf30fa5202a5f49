//! A fault on demand: the host swallows one notification.
//!
//! It proves that the tests that check the host from outside notice a lost notification. The flag is hidden,
//! and off by default.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Counts the host's notifications and swallows one of them. Cheap to clone; clones share the count.
#[derive(Clone, Debug)]
pub(crate) struct FaultHook {
    /// The notifications left until the one that is swallowed; zero afterwards.
    left: Option<Arc<AtomicU64>>,
}

// === impl FaultHook ===

impl FaultHook {
    /// Creates a hook that swallows the n-th notification, counted from one; `None` swallows none.
    #[must_use]
    pub(crate) fn new(nth: Option<u64>) -> Self {
        Self { left: nth.map(|nth| Arc::new(AtomicU64::new(nth))) }
    }

    /// Counts a notification, and returns whether it is the one to swallow.
    pub(super) fn swallows(&self) -> bool {
        let Some(left) = &self.left else { return false };
        left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)) == Ok(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hook_swallows_exactly_one_notification() {
        let hook = FaultHook::new(Some(3));
        let swallowed: Vec<_> = (0..6).map(|_| hook.clone().swallows()).collect();
        assert_eq!(swallowed, [false, false, true, false, false, false]);
        assert!(!FaultHook::new(None).swallows());
    }
}

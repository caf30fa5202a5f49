//! A fault on demand: one notification that nobody is told of.
//!
//! It exists to prove that those who check the host from outside notice. Hidden, and off unless asked for.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Counts the host's notifications and swallows one of them. Cheap to clone; clones count together.
#[derive(Clone, Debug)]
pub struct FaultHook {
    /// What is left until then; zero: never (again).
    left: Option<Arc<AtomicU64>>,
}

// === impl FaultHook ===

impl FaultHook {
    /// Makes one that swallows the n-th notification, counted from one; none swallows nothing.
    #[must_use]
    pub fn new(nth: Option<u64>) -> Self {
        Self { left: nth.map(|nth| Arc::new(AtomicU64::new(nth))) }
    }

    /// Whether this notification is the one.
    pub(super) fn swallows(&self) -> bool {
        let Some(left) = &self.left else { return false };
        left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)) == Ok(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn swallows_exactly_one() {
        let hook = FaultHook::new(Some(3));
        let swallowed: Vec<_> = (0..6).map(|_| hook.clone().swallows()).collect();
        assert_eq!(swallowed, [false, false, true, false, false, false]);
        assert!(!FaultHook::new(None).swallows());
    }
}

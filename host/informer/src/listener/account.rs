//! Counts and limits the bytes of superseded states that backlogs hold.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Counts the bytes of JSON text of the states that the backlogs of one owner hold, but no cache holds any
/// more. Clones are the same account.
///
/// Each state counts in full, even if others hold it too. While the account is full, no notification is
/// refused or lost: notifications of one object merge, so that at most one superseded state of each object is
/// added.
#[derive(Clone, Debug)]
pub struct BacklogAccount {
    n_bytes: Arc<AtomicUsize>,
    limit: usize,
}

// === impl BacklogAccount ===

impl BacklogAccount {
    /// Returns an account that is full when it holds `limit` bytes.
    #[must_use]
    pub fn new(limit: usize) -> Self {
        Self { n_bytes: Arc::default(), limit }
    }

    /// Returns how many bytes are charged.
    #[must_use]
    pub fn held(&self) -> usize {
        self.n_bytes.load(Ordering::Relaxed)
    }

    /// Returns whether the limit is reached.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.held() >= self.limit
    }

    pub(super) fn charge(&self, n_bytes: usize) {
        if n_bytes > 0 {
            self.n_bytes.fetch_add(n_bytes, Ordering::Relaxed);
        }
    }

    pub(super) fn refund(&self, n_bytes: usize) {
        if n_bytes > 0 {
            self.n_bytes.fetch_sub(n_bytes, Ordering::Relaxed);
        }
    }
}

/// An account with a limit of 64 MiB.
impl Default for BacklogAccount {
    fn default() -> Self {
        Self::new(64 << 20)
    }
}

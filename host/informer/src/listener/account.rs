//! How many bytes of superseded states backlogs hold, and how many they may.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// What the backlogs of one owner hold that no cache holds any more, in bytes of JSON text. Clones are the same account.
///
/// Each state counts in full, though others may hold it too. When the account is full nothing is refused or lost: notifications of one
/// object merge, so that at most one superseded state of each object is added.
#[derive(Clone, Debug)]
pub struct BacklogAccount {
    held: Arc<AtomicUsize>,
    most: usize,
}

// === impl BacklogAccount ===

impl BacklogAccount {
    /// Makes an account that is full when it holds so many bytes.
    #[must_use]
    pub fn new(most: usize) -> Self {
        Self { held: Arc::default(), most }
    }

    /// Returns how many bytes it holds.
    #[must_use]
    pub fn held(&self) -> usize {
        self.held.load(Ordering::Relaxed)
    }

    /// Whether it holds as much as it may.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.held() >= self.most
    }

    pub(super) fn add(&self, n_bytes: usize) {
        if n_bytes > 0 {
            self.held.fetch_add(n_bytes, Ordering::Relaxed);
        }
    }

    pub(super) fn take_off(&self, n_bytes: usize) {
        if n_bytes > 0 {
            self.held.fetch_sub(n_bytes, Ordering::Relaxed);
        }
    }
}

/// 64 MiB.
impl Default for BacklogAccount {
    fn default() -> Self {
        Self::new(64 << 20)
    }
}

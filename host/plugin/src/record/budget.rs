//! The bytes that all files of one plugin may have together.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
};

/// The bytes that the records of one plugin may have together. Cheap to clone: clones share the bytes.
#[derive(Debug, Clone)]
pub struct Budget {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    limit: u64,
    taken: AtomicU64,
    is_used_up: AtomicBool,
}

// === impl Budget ===

impl Budget {
    /// Returns a budget of so many bytes.
    #[must_use]
    pub fn new(limit: u64) -> Self {
        let shared = Shared { limit, taken: AtomicU64::new(0), is_used_up: AtomicBool::new(false) };
        Self { shared: Arc::new(shared) }
    }

    /// Returns the maximum.
    #[must_use]
    pub fn limit(&self) -> u64 {
        self.shared.limit
    }

    /// Returns whether a file had no room. Then every file ends, and no further one is created.
    #[must_use]
    pub fn is_used_up(&self) -> bool {
        self.shared.is_used_up.load(Relaxed)
    }

    /// Returns the bytes that files have, or that are kept for them.
    pub(super) fn taken(&self) -> u64 {
        self.shared.taken.load(Relaxed)
    }

    /// Takes bytes for a file. Without room for them the budget is used up.
    pub(super) fn take(&self, bytes: u64) -> bool {
        let add = |taken: u64| taken.checked_add(bytes).filter(|taken| *taken <= self.shared.limit);
        let has_room = !self.is_used_up() && self.shared.taken.fetch_update(Relaxed, Relaxed, add).is_ok();
        if !has_room {
            self.shared.is_used_up.store(true, Relaxed);
        }
        has_room
    }

    /// Gives back bytes that a file did not need.
    pub(super) fn give_back(&self, bytes: u64) {
        self.shared.taken.fetch_sub(bytes, Relaxed);
    }
}

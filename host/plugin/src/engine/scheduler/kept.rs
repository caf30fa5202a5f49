//! Permits that are kept between two calls of a plugin.

use std::sync::{
    Arc,
    atomic::{
        AtomicU8,
        Ordering::{Relaxed, SeqCst},
    },
};

use super::{LEAD, NO_KEY, Scheduler, Share};

/// A permit that a plugin keeps for its next call; or none. At most one for each plugin.
#[derive(Debug, Default)]
pub(in crate::engine) struct KeptPermit(AtomicU8);

/// There is none.
const NONE: u8 = 0;
const NEW: u8 = 1;
/// There is one, and there was one at the last tick.
const OLD: u8 = 2;

// === impl KeptPermit ===

impl KeptPermit {
    pub(in crate::engine) fn is_there(&self) -> bool {
        self.0.load(Relaxed) != NONE
    }

    /// Takes the permit. Returns whether there was one.
    pub(super) fn take(&self) -> bool {
        self.is_there() && self.0.swap(NONE, SeqCst) != NONE
    }

    /// Notes a tick. Returns whether there is a permit, which is old now.
    fn grows_old(&self) -> bool {
        self.0.compare_exchange(NEW, OLD, SeqCst, SeqCst).is_ok()
    }

    /// Takes the permit if it was there at the last tick.
    fn take_old(&self) -> bool {
        self.0.compare_exchange(OLD, NONE, SeqCst, SeqCst).is_ok()
    }
}

// === impl Scheduler ===

impl Scheduler {
    /// Keeps the permit of a call that ended for the next call of its plugin, if that one is before all that
    /// wait, and before those that ask for a permit meanwhile, as far as that is known without the lock.
    /// Returns whether it is kept.
    pub(super) fn keep(&self, share: &Share) -> bool {
        let kept = share.kept();
        if !share.keeps_permits() || self.n_free.load(SeqCst) > 0 || kept.is_there() {
            return false;
        }
        if !self.is_before_all(share.virtual_time()) {
            return false;
        }
        let mut queue = self.queue.lock();
        if kept.0.compare_exchange(NONE, NEW, SeqCst, SeqCst).is_err() {
            // Another call of the plugin ended at the same time.
            return false;
        }
        if !queue.kept.iter().any(|other| Arc::ptr_eq(other, kept)) {
            queue.kept.push(Arc::clone(kept));
        }
        true
    }

    /// Returns whether a plugin at this virtual time has used less than those that wait; if none waits, less
    /// than those that run.
    fn is_before_all(&self, used: u64) -> bool {
        match self.first_key.load(Relaxed) {
            NO_KEY => used.saturating_add(LEAD) < self.virtual_time.load(Relaxed),
            first_key => used < first_key,
        }
    }

    /// Gives back the permit that a plugin keeps.
    pub(in crate::engine) fn give_back_kept(&self, share: &Share) {
        if share.kept().take() {
            self.give_back();
        }
    }

    /// Gives back the permits that are kept for longer than a tick. Their plugins did not pass them on, or
    /// prepare a call for long.
    pub(in crate::engine) fn tick(&self) {
        if self.n_free.load(Relaxed) == self.n_permits {
            return;
        }
        let mut n_old = 0;
        self.queue.lock().kept.retain(|kept| {
            n_old += usize::from(kept.take_old());
            kept.grows_old()
        });
        (0..n_old).for_each(|_| self.give_back());
    }
}

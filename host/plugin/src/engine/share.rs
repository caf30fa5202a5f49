//! A plugin's share of the CPU time that guests get.

use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering::Relaxed},
};

/// The weight of a plugin whose file has none.
pub const DEFAULT_WEIGHT: u32 = 100;

/// The maximum weight of a plugin.
pub const MAX_WEIGHT: u32 = 1_000;

/// A plugin's share of the CPU time that guests get, for all its generations and instances. Cheap to clone;
/// clones share one share.
///
/// While more guests want to run than may run at once, each plugin gets CPU time in proportion to its weight.
#[derive(Debug, Clone)]
pub struct Share {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    weight: AtomicU32,
}

// === impl Share ===

impl Share {
    pub(super) fn new(weight: u32) -> Self {
        Self { shared: Arc::new(Shared { weight: AtomicU32::new(clamp(weight)) }) }
    }

    /// Returns the weight.
    #[must_use]
    pub fn weight(&self) -> u32 {
        self.shared.weight.load(Relaxed)
    }

    /// Changes the weight: 1 to [`MAX_WEIGHT`]; a value outside becomes the nearest of them.
    pub fn set_weight(&self, weight: u32) {
        self.shared.weight.store(clamp(weight), Relaxed);
    }
}

fn clamp(weight: u32) -> u32 {
    weight.clamp(1, MAX_WEIGHT)
}

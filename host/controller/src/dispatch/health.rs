//! What went wrong in one generation since it serves.

use crate::followed::{Followed, Follower};

/// Counts the losses of one generation. The dispatcher writes it, and the task that watches its
/// probation reads it, also after the generation has ended.
#[derive(Debug, Default)]
pub(crate) struct GenerationHealth(Followed<HealthView>);

/// A snapshot of the counts of a [`GenerationHealth`].
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct HealthView {
    /// Instances that were lost, for whatever reason, those that missed a deadline and those that could not
    /// be made included.
    pub(crate) losses: u32,
    /// Instances that were lost because a call missed its deadline.
    pub(crate) missed_deadlines: u32,
}

// === impl GenerationHealth ===

impl GenerationHealth {
    /// Counts a lost instance.
    pub(super) fn lost(&self, missed_deadline: bool) {
        self.0.update(|counts| {
            counts.losses = counts.losses.saturating_add(1);
            counts.missed_deadlines = counts.missed_deadlines.saturating_add(u32::from(missed_deadline));
        });
    }

    /// Returns a follower of the counts.
    pub(crate) fn follow(&self) -> Follower<HealthView> {
        self.0.follower()
    }
}

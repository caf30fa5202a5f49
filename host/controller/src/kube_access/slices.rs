//! Divides work for a guest into slices, so that other tasks can run after each.
//!
//! A read of a guest may touch megabytes of text. Work is counted, not timed: a slice is about a millisecond.
//! A call beyond its deadline ends at the yield after a slice.

/// The work of one slice. One byte of text counts as one.
const SLICE: usize = 512 << 10;

/// The work of one object without its text: matching its labels, beginning its row.
pub(super) const OBJECT: usize = 2 << 10;

/// The largest text that one call reads. A page ends before an object that exceeds it, but has at least one
/// row.
pub(super) const TEXT_PER_CALL: usize = 16 << 20;

/// Counts the work of one call.
pub(super) struct Slices {
    left_in_slice: usize,
    text_left: usize,
}

// === impl Slices ===

impl Slices {
    pub(super) fn begin() -> Self {
        Self { left_in_slice: SLICE, text_left: TEXT_PER_CALL }
    }

    /// Returns the work that is left in this slice.
    pub(super) fn left(&self) -> usize {
        self.left_in_slice
    }

    /// Counts work, and yields to other tasks when the slice is over. The caller must hold no lock.
    pub(super) async fn worked(&mut self, work: usize) {
        self.left_in_slice = self.left_in_slice.saturating_sub(work);
        if self.left_in_slice == 0 {
            tokio::task::yield_now().await;
            self.left_in_slice = SLICE;
        }
    }

    /// Returns whether the call may read so many more bytes of text.
    pub(super) fn may_read(&self, bytes: usize) -> bool {
        bytes <= self.text_left
    }

    /// Counts text that the call reads. [`Slices::worked`] counts the work on it.
    pub(super) fn reads(&mut self, bytes: usize) {
        self.text_left = self.text_left.saturating_sub(bytes);
    }
}

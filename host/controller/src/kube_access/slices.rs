//! Work for a guest, done in slices: after each the other tasks of the worker get their turn.
//!
//! What a guest asks for may be megabytes of text. Work is counted, not timed: a slice is about as much as
//! takes a millisecond. A call that has passed its deadline ends at the pause after a slice.

/// Work of one slice: a byte of text that is passed over counts one.
const SLICE: usize = 512 << 10;

/// What looking at one object counts: its labels matched, its row begun.
pub(super) const LOOK: usize = 2 << 10;

/// How much text one call reads. A page ends before the object with which it would be more, but has one row
/// at least.
pub(super) const TEXT_PER_CALL: usize = 16 << 20;

/// The work of one call.
pub(super) struct Slices {
    left_in_slice: usize,
    text_left: usize,
}

// === impl Slices ===

impl Slices {
    pub(super) fn begin() -> Self {
        Self { left_in_slice: SLICE, text_left: TEXT_PER_CALL }
    }

    /// Returns how much work is left of this slice.
    pub(super) fn left(&self) -> usize {
        self.left_in_slice
    }

    /// Counts work that was done; lets the others have their turn once the slice is over. No lock may be
    /// held.
    pub(super) async fn worked(&mut self, work: usize) {
        self.left_in_slice = self.left_in_slice.saturating_sub(work);
        if self.left_in_slice == 0 {
            tokio::task::yield_now().await;
            self.left_in_slice = SLICE;
        }
    }

    /// Whether the call may read so much more text.
    pub(super) fn may_read(&self, bytes: usize) -> bool {
        bytes <= self.text_left
    }

    /// Counts text that is read. The work on it is counted by itself.
    pub(super) fn reads(&mut self, bytes: usize) {
        self.text_left = self.text_left.saturating_sub(bytes);
    }
}

//! Says when processing takes long while others wait (DF-44).

use std::time::Duration;

use tokio::time::Instant;

use crate::names::ObjectKey;

/// With no more than so many waiting, nobody is in a hurry.
const DEPTH: usize = 10;

/// Processing one object takes microseconds.
const LONG: Duration = Duration::from_millis(100);

/// The processing of one object.
pub(super) struct Trace {
    depth: usize,
    /// None where nobody waits.
    begun_at: Option<Instant>,
}

// === impl Trace ===

impl Trace {
    /// Begins, with so many waiting behind.
    pub(super) fn of(depth: usize) -> Self {
        Self { depth, begun_at: (depth > DEPTH).then(Instant::now) }
    }

    pub(super) fn end(&self, key: &ObjectKey) {
        if let Some(took) = self.too_long() {
            let depth = self.depth;
            tracing::info!(%key, depth, ?took, "processing an object took long while others waited");
        }
    }

    fn too_long(&self) -> Option<Duration> {
        self.begun_at.map(|begun_at| begun_at.elapsed()).filter(|took| *took > LONG)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn long_processing_is_traced_where_more_than_ten_wait_df_44() {
        let (few, many) = (Trace::of(10), Trace::of(11));
        tokio::time::advance(LONG).await;
        assert_eq!((few.too_long(), many.too_long()), (None, None));
        tokio::time::advance(LONG).await;
        assert_eq!((few.too_long(), many.too_long()), (None, Some(2 * LONG)));
    }
}

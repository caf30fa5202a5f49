//! Logs an object whose processing takes long while many others wait (DF-44).

use std::time::Duration;

use tokio::time::Instant;

use crate::names::ObjectKey;

/// Processing is traced while more keys than this wait.
const MIN_DEPTH: usize = 10;

/// Processing that takes longer than this is logged. Usually it takes microseconds.
const LIMIT: Duration = Duration::from_millis(100);

/// The processing of one object.
pub(super) struct Trace {
    depth: usize,
    /// None if too few keys wait.
    begun_at: Option<Instant>,
}

// === impl Trace ===

impl Trace {
    /// Starts to trace the processing of an object behind which `depth` keys wait.
    pub(super) fn start(depth: usize) -> Self {
        Self { depth, begun_at: (depth > MIN_DEPTH).then(Instant::now) }
    }

    pub(super) fn end(&self, key: &ObjectKey) {
        if let Some(took) = self.too_long() {
            let depth = self.depth;
            tracing::info!(%key, depth, ?took, "processing an object took long while others waited");
        }
    }

    fn too_long(&self) -> Option<Duration> {
        self.begun_at.map(|begun_at| begun_at.elapsed()).filter(|took| *took > LIMIT)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn long_processing_is_logged_while_more_than_ten_keys_wait_df_44() {
        let (few, many) = (Trace::start(10), Trace::start(11));
        tokio::time::advance(LIMIT).await;
        assert_eq!((few.too_long(), many.too_long()), (None, None));
        tokio::time::advance(LIMIT).await;
        assert_eq!((few.too_long(), many.too_long()), (None, Some(2 * LIMIT)));
    }
}

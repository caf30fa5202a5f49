//! A watch whose events the test sends one by one.

use futures::StreamExt;
use tokio::sync::{mpsc, oneshot};

use crate::list_watch::{ApiError, WatchEvent, WatchStream};

/// The server's end of one watch. Dropping it ends the watch without an error.
pub struct ScriptedWatch {
    items: mpsc::Sender<Scripted>,
    is_buffered: bool,
}

struct Scripted {
    item: Result<WatchEvent, ApiError>,
    /// Notified when the reader takes the item.
    taken: oneshot::Sender<()>,
}

// === impl ScriptedWatch ===

impl ScriptedWatch {
    /// Makes a watch with a buffer of this size. Without a buffer, `send` waits until the reader takes the
    /// event (WT-01).
    pub fn new(n_buffered: usize) -> (Self, WatchStream) {
        let (items, receiver) = mpsc::channel::<Scripted>(n_buffered.max(1));
        let stream = futures::stream::unfold(receiver, async |mut receiver| {
            let Scripted { item, taken } = receiver.recv().await?;
            // With a buffer, no sender waits for this.
            let _ = taken.send(());
            Some((item, receiver))
        });
        (Self { items, is_buffered: n_buffered > 0 }, stream.boxed())
    }

    /// Sends an event or an error. Waits until the buffer has room; without a buffer, until the reader takes
    /// it. Returns whether the watch still has a reader.
    pub async fn send(&self, item: Result<WatchEvent, ApiError>) -> bool {
        let (taken, is_taken) = oneshot::channel();
        if self.items.send(Scripted { item, taken }).await.is_err() {
            return false;
        }
        self.is_buffered || is_taken.await.is_ok()
    }

    /// Returns whether the reader has dropped the watch.
    pub fn is_stopped(&self) -> bool {
        self.items.is_closed()
    }

    /// Waits until the reader has dropped the watch.
    pub async fn stopped(&self) {
        self.items.closed().await;
    }
}

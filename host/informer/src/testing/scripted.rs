//! A watch of which the test says everything, event by event.

use futures::StreamExt;
use tokio::sync::{mpsc, oneshot};

use crate::list_watch::{ApiError, WatchEvent, WatchStream};

/// The server's end of one watch. Dropping it ends the watch the orderly way.
pub struct ScriptedWatch {
    items: mpsc::Sender<Scripted>,
    is_buffered: bool,
}

struct Scripted {
    item: Result<WatchEvent, ApiError>,
    /// Told when the item is taken.
    taken: oneshot::Sender<()>,
}

// === impl ScriptedWatch ===

impl ScriptedWatch {
    /// Makes a watch that holds so many events that nobody has taken yet. With none, each is handed over (WT-01).
    pub fn new(n_buffered: usize) -> (Self, WatchStream) {
        let (items, receiver) = mpsc::channel::<Scripted>(n_buffered.max(1));
        let stream = futures::stream::unfold(receiver, async |mut receiver| {
            let Scripted { item, taken } = receiver.recv().await?;
            // Nobody waits for it where the watch is buffered.
            let _ = taken.send(());
            Some((item, receiver))
        });
        (Self { items, is_buffered: n_buffered > 0 }, stream.boxed())
    }

    /// Sends an event, or what else may come. Ends when there is room for it; without a buffer, when it is taken. Answers
    /// whether anyone still reads.
    pub async fn send(&self, item: Result<WatchEvent, ApiError>) -> bool {
        let (taken, is_taken) = oneshot::channel();
        if self.items.send(Scripted { item, taken }).await.is_err() {
            return false;
        }
        self.is_buffered || is_taken.await.is_ok()
    }

    /// Whether the watch was stopped: nobody reads it any more.
    pub fn is_stopped(&self) -> bool {
        self.items.is_closed()
    }

    /// Waits until the watch was stopped.
    pub async fn stopped(&self) {
        self.items.closed().await;
    }
}

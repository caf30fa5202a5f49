//! A broadcaster: each watch has a bounded queue.

use std::any::Any;
use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use parking_lot::Mutex;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// Delivers each Event to all current watches. Clones share it.
pub struct Broadcaster<E> {
    shared: Arc<BroadcasterShared<E>>,
}

/// The queue of one watch. Dropping it ends the watch.
pub struct Watch<E> {
    queue: mpsc::Receiver<Queued<E>>,
    /// The value held for the Event taken last.
    held: Option<Held>,
    closing: CancellationToken,
}

/// A queued Event, and the value that lives until all watches are done with it.
struct Queued<E> {
    event: Arc<E>,
    held: Option<Held>,
}

/// A value that lives as long as an Event.
type Held = Arc<dyn Any + Send + Sync>;

/// An Event did not reach every queue.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum Dropped {
    /// The queue of a watch is full. The other watches have the Event.
    #[error("the queue of Events is full")]
    Full,
    /// The broadcaster is shut down.
    #[error("the recorder of Events is shut down")]
    ShutDown,
}

struct BroadcasterShared<E> {
    capacity: usize,
    /// None after the shutdown. Locked during the delivery of an Event, so that all queues have the same
    /// order.
    watchers: Mutex<Option<Vec<mpsc::Sender<Queued<E>>>>>,
    closing: CancellationToken,
    dropped: AtomicU64,
}

// === impl Broadcaster ===

impl<E> Broadcaster<E> {
    /// The default capacity of the queue of one watch (ER-03).
    pub const QUEUE: usize = 1_000;

    /// Returns a broadcaster without watches.
    #[must_use]
    pub fn new() -> Self {
        Self::with_capacity(Self::QUEUE)
    }

    /// Returns a broadcaster with another queue capacity, at least 1.
    #[must_use]
    pub fn with_capacity(capacity: usize) -> Self {
        let (capacity, closing) = (capacity.max(1), CancellationToken::new());
        let watchers = Mutex::new(Some(Vec::new()));
        Self {
            shared: Arc::new(BroadcasterShared { capacity, watchers, closing, dropped: AtomicU64::new(0) }),
        }
    }

    /// Starts a watch of the following Events. After the shutdown it ends at once.
    #[must_use]
    pub fn watch(&self) -> Watch<E> {
        let (sender, queue) = mpsc::channel(self.shared.capacity);
        if let Some(watchers) = &mut *self.shared.watchers.lock() {
            watchers.push(sender);
        }
        Watch { queue, held: None, closing: self.shared.closing.clone() }
    }

    /// Delivers an Event to every watch whose queue has room. Never blocks.
    ///
    /// # Errors
    ///
    /// When a queue is full, or after the shutdown.
    pub fn emit(&self, event: E) -> Result<(), Dropped> {
        self.emit_with(event, None)
    }

    /// Delivers an Event with a value that is dropped when every watch has taken its next Event.
    ///
    /// # Errors
    ///
    /// As [`emit`](Self::emit).
    pub fn emit_holding(&self, event: E, held: impl Send + Sync + 'static) -> Result<(), Dropped> {
        self.emit_with(event, Some(Arc::new(held)))
    }

    fn emit_with(&self, event: E, held: Option<Held>) -> Result<(), Dropped> {
        let mut watchers = self.shared.watchers.lock();
        let Some(watchers) = &mut *watchers else { return Err(Dropped::ShutDown) };
        let event = Arc::new(event);
        let mut full = 0;
        let queued = || Queued { event: event.clone(), held: held.clone() };
        watchers.retain(|queue| match queue.try_send(queued()) {
            Ok(()) => true,
            Err(mpsc::error::TrySendError::Full(_)) => {
                full += 1;
                true
            }
            Err(mpsc::error::TrySendError::Closed(_)) => false,
        });
        if full == 0 {
            return Ok(());
        }
        self.shared.dropped.fetch_add(full, Ordering::Relaxed);
        Err(Dropped::Full)
    }

    /// Shuts down: no Event is emitted any more, and each watch ends after its queued Events. May be called
    /// twice.
    pub fn shut_down(&self) {
        self.shared.closing.cancel();
        *self.shared.watchers.lock() = None;
    }

    /// Returns the number of Events that found a queue full, counted per queue.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.shared.dropped.load(Ordering::Relaxed)
    }
}

impl<E> Default for Broadcaster<E> {
    fn default() -> Self {
        Self::new()
    }
}

impl<E> Clone for Broadcaster<E> {
    fn clone(&self) -> Self {
        Self { shared: self.shared.clone() }
    }
}

// === impl Watch ===

impl<E> Watch<E> {
    /// Waits for the next Event. Returns none when the broadcaster is dropped or shut down and the queue is
    /// empty. Cancel safe.
    pub async fn next(&mut self) -> Option<Arc<E>> {
        self.held = None;
        let Queued { event, held } = self.queue.recv().await?;
        self.held = held;
        Some(event)
    }

    /// Returns a token that the shutdown cancels: queued Events should then be handled without retries.
    pub(crate) fn closing(&self) -> CancellationToken {
        self.closing.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Conformance: B.2
    #[tokio::test]
    async fn a_watch_gets_every_event_after_its_start() {
        let broadcaster = Broadcaster::new();
        assert_eq!(broadcaster.emit(0), Ok(()), "no watch");
        let mut one = broadcaster.watch();
        broadcaster.emit(1).unwrap();
        let mut two = broadcaster.watch();
        broadcaster.emit(2).unwrap();
        assert_eq!((one.next().await.as_deref(), one.next().await.as_deref()), (Some(&1), Some(&2)));
        assert_eq!(two.next().await.as_deref(), Some(&2));
        drop(one);
        broadcaster.emit(3).unwrap();
        drop(broadcaster);
        assert_eq!((two.next().await.as_deref(), two.next().await), (Some(&3), None));
    }

    // Conformance: B.2
    #[tokio::test]
    async fn a_full_queue_drops_and_counts_events_and_blocks_no_other_er_03() {
        let broadcaster = Broadcaster::with_capacity(2);
        let (mut slow, mut quick) = (broadcaster.watch(), broadcaster.watch());
        for n in 0..4 {
            let emitted = broadcaster.emit(n);
            assert_eq!(emitted, if n < 2 { Ok(()) } else { Err(Dropped::Full) });
            assert_eq!(quick.next().await.as_deref(), Some(&n));
        }
        assert_eq!(broadcaster.dropped(), 2);
        broadcaster.shut_down();
        assert_eq!((slow.next().await.as_deref(), slow.next().await.as_deref()), (Some(&0), Some(&1)));
        assert_eq!(slow.next().await, None);
    }

    #[tokio::test]
    async fn a_held_value_is_dropped_when_all_watches_are_done_with_the_event() {
        let broadcaster = Broadcaster::new();
        let (mut one, mut two) = (broadcaster.watch(), broadcaster.watch());
        let held = Arc::new(());
        broadcaster.emit_holding(1, held.clone()).unwrap();
        broadcaster.emit(2).unwrap();
        one.next().await.unwrap();
        two.next().await.unwrap();
        one.next().await.unwrap();
        assert_eq!(Arc::strong_count(&held), 2);
        two.next().await.unwrap();
        assert_eq!(Arc::strong_count(&held), 1);
        drop((one, two));
        broadcaster.emit_holding(3, held.clone()).unwrap();
        assert_eq!(Arc::strong_count(&held), 1);
    }

    // Conformance: B.2
    #[tokio::test]
    async fn watches_end_after_the_shutdown() {
        let broadcaster = Broadcaster::new();
        let mut before = broadcaster.watch();
        broadcaster.shut_down();
        broadcaster.shut_down();
        assert_eq!(broadcaster.emit(1), Err(Dropped::ShutDown));
        assert_eq!(before.next().await, None);
        assert_eq!(broadcaster.watch().next().await, None);
    }
}

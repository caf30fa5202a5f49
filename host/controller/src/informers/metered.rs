//! A list and watch whose objects are counted against the budget while they arrive.
//!
//! When the list exceeds the budget, it stops: it returns no more objects, and it does not end either.
//! [`Meter::exceeded`] wakes the [`SourceController`](super::source_controller::SourceController), which
//! switches to another source and so aborts the list. So an oversized list never reaches the cache, even if
//! it arrived at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use async_trait::async_trait;
use futures::{StreamExt, stream};
use oarlock_informer::list_watch::{ItemHook, ListOptions, ListPage, WatchEvent, WatchOptions, WatchStream};
use oarlock_informer::{
    Object,
    list_watch::{ApiError, ListWatch},
};
use parking_lot::Mutex;
use tokio::sync::Notify;

use super::InformersShared;
use super::budget::{Excess, Usage};

/// Objects are added to the counters in batches of this size.
const BATCH: usize = 64;

/// Counts the objects of a list and watch until the cache has them.
pub(super) struct MeteredListWatch {
    pub(super) list_watch: Arc<dyn ListWatch>,
    pub(super) meter: Arc<Meter>,
}

/// The objects that arrived so far.
pub(super) struct Meter {
    shared: Arc<InformersShared>,
    /// The usage of the objects that the list will replace.
    replaces: Usage,
    objects: AtomicUsize,
    bytes: AtomicUsize,
    /// The newest objects. Their size is known a little later, because they are compressed in place.
    last: Mutex<Vec<Object>>,
    has_ended: AtomicBool,
    /// The limit that was exceeded first, and the size of the list at that time.
    excess: Mutex<Option<(Excess, Usage)>>,
    exceeded: Notify,
}

// === impl MeteredListWatch ===

#[async_trait]
impl ListWatch for MeteredListWatch {
    async fn list(&self, options: ListOptions, keep: ItemHook<'_>) -> Result<ListPage, ApiError> {
        if options.continue_token.is_none() {
            self.meter.reset();
        }
        let counted = |object| {
            let kept = keep(object);
            self.meter.count(&kept);
            kept
        };
        tokio::select! {
            biased;
            _ = self.meter.exceeded() => {}
            result = self.list_watch.list(options, &counted) => if !self.meter.is_exceeded() { return result },
        }
        std::future::pending().await
    }

    async fn watch(&self, options: WatchOptions) -> Result<WatchStream, ApiError> {
        let events = self.list_watch.watch(options).await?;
        let meter = self.meter.clone();
        let fitting = events.take_while(move |event| {
            if let Ok(WatchEvent::Added(object)) = event {
                meter.count(object);
            }
            let is_exceeded = meter.is_exceeded();
            async move { !is_exceeded }
        });
        let meter = self.meter.clone();
        // The stream of an oversized list neither continues nor ends.
        let rest = stream::once(async move {
            if meter.is_exceeded() {
                std::future::pending::<()>().await;
            }
        });
        Ok(fitting.chain(rest.filter_map(|()| async { None })).boxed())
    }

    fn supports_watch_list(&self) -> bool {
        self.list_watch.supports_watch_list()
    }
}

// === impl Meter ===

impl Meter {
    pub(super) fn new(shared: Arc<InformersShared>, replaces: Usage) -> Self {
        Self {
            shared,
            replaces,
            objects: AtomicUsize::new(0),
            bytes: AtomicUsize::new(0),
            last: Mutex::default(),
            has_ended: AtomicBool::new(false),
            excess: Mutex::default(),
            exceeded: Notify::new(),
        }
    }

    /// Waits until the list exceeds the budget; returns the limit, and how much the list adds at least.
    pub(super) async fn exceeded(&self) -> (Excess, Usage) {
        loop {
            let notified = self.exceeded.notified();
            if let Some(excess) = *self.excess.lock() {
                return excess;
            }
            notified.await;
        }
    }

    fn is_exceeded(&self) -> bool {
        self.excess.lock().is_some()
    }

    /// Stops counting, because the cache counts the objects now, or because the list was aborted.
    pub(super) fn end(&self) {
        self.has_ended.store(true, Ordering::Relaxed);
        self.reset();
    }

    /// Resets the counters, for a new list or after the last.
    fn reset(&self) {
        self.last.lock().clear();
        let (objects, bytes) =
            (self.objects.swap(0, Ordering::Relaxed), self.bytes.swap(0, Ordering::Relaxed));
        self.shared.ledger.remove_arriving(objects, bytes);
    }

    fn count(&self, object: &Object) {
        if self.has_ended.load(Ordering::Relaxed) {
            return;
        }
        let lengths: Vec<usize> = {
            let mut last = self.last.lock();
            last.push(object.clone());
            if last.len() < BATCH && object.json_length() < 1 << 20 {
                return;
            }
            last.drain(..).map(|object| object.kept_length()).collect()
        };
        let bytes: usize = lengths.iter().sum();
        self.shared.ledger.add_arriving(lengths.len(), bytes);
        let n_objects = self.objects.fetch_add(lengths.len(), Ordering::Relaxed) + lengths.len();
        let n_bytes = self.bytes.fetch_add(bytes, Ordering::Relaxed) + bytes;
        if let Some(excess) = self.excess_now() {
            let more = Usage {
                informers: 0,
                objects: n_objects.saturating_sub(self.replaces.objects),
                bytes: n_bytes.saturating_sub(self.replaces.bytes),
            };
            self.excess.lock().get_or_insert((excess, more));
            self.exceeded.notify_waiters();
        }
    }

    fn excess_now(&self) -> Option<Excess> {
        let Usage { objects, bytes, .. } = self.shared.ledger.add_to(self.shared.usage());
        let usage = Usage {
            informers: 0,
            objects: objects.saturating_sub(self.replaces.objects),
            bytes: bytes.saturating_sub(self.replaces.bytes),
        };
        self.shared.limits.exceeded_by(&usage)
    }
}

impl Drop for Meter {
    fn drop(&mut self) {
        self.reset();
    }
}

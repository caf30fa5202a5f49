//! A list that may turn out too large for the budget, counted while it arrives.
//!
//! Once it is too large nothing more of it comes, and it does not end either: whoever owns the informer hears of it and goes over to another
//! source, by which the list is given up. So not even a list that was all there in the same moment gets into a cache.

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

/// So many objects are added up at once.
const LOOK_EVERY: usize = 64;

/// Lists and watches, and counts what comes until the cache holds it.
pub(super) struct MeteredListWatch {
    pub(super) list_watch: Arc<dyn ListWatch>,
    pub(super) meter: Arc<Meter>,
}

/// What has come so far.
pub(super) struct Meter {
    shared: Arc<InformersShared>,
    /// What the list is to take the place of.
    replaces: Usage,
    objects: AtomicUsize,
    bytes: AtomicUsize,
    /// The last that came: how they are kept shows a little later, since they are compressed in place.
    last: Mutex<Vec<Object>>,
    has_ended: AtomicBool,
    /// What there was too much of, and how much had come when that was seen first.
    excess: Mutex<Option<(Excess, Usage)>>,
    exceeded: Notify,
}

// === impl MeteredListWatch ===

#[async_trait]
impl ListWatch for MeteredListWatch {
    async fn list(&self, options: ListOptions, keep: ItemHook<'_>) -> Result<ListPage, ApiError> {
        if options.continue_token.is_none() {
            self.meter.begin();
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
        // A watch that ends as any other ends; one that is too much neither goes on nor ends.
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

    /// Waits until there is more than the budget has room for; returns what of, and how much more there would be at least.
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

    /// Everything is in the cache, where it is counted from now on, or was given up.
    pub(super) fn end(&self) {
        self.has_ended.store(true, Ordering::Relaxed);
        self.begin();
    }

    /// Forgets a list that came to nothing.
    fn begin(&self) {
        self.last.lock().clear();
        let (objects, bytes) =
            (self.objects.swap(0, Ordering::Relaxed), self.bytes.swap(0, Ordering::Relaxed));
        self.shared.ledger.settle(objects, bytes);
    }

    fn count(&self, object: &Object) {
        if self.has_ended.load(Ordering::Relaxed) {
            return;
        }
        let lengths: Vec<usize> = {
            let mut last = self.last.lock();
            last.push(object.clone());
            if last.len() < LOOK_EVERY && object.json_length() < 1 << 20 {
                return;
            }
            last.drain(..).map(|object| object.kept_length()).collect()
        };
        let bytes: usize = lengths.iter().sum();
        self.shared.ledger.arrive(lengths.len(), bytes);
        let n_objects = self.objects.fetch_add(lengths.len(), Ordering::Relaxed) + lengths.len();
        let n_bytes = self.bytes.fetch_add(bytes, Ordering::Relaxed) + bytes;
        if let Some(excess) = self.look() {
            let more = Usage {
                informers: 0,
                objects: n_objects.saturating_sub(self.replaces.objects),
                bytes: n_bytes.saturating_sub(self.replaces.bytes),
            };
            self.excess.lock().get_or_insert((excess, more));
            self.exceeded.notify_waiters();
        }
    }

    fn look(&self) -> Option<Excess> {
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
        self.begin();
    }
}

//! A queue of keys (client-go: `util/workqueue`): each key waits at most once, one worker at a time has it,
//! and retries are delayed.
//!
//! The queue holds keys only; a worker reads the object of its key from the cache. Adding a waiting key does
//! nothing; a key that is added during its processing runs again afterwards.
//!
//! The queue has no task: callers of [`WorkQueue::get`] move delayed keys into the queue when they are due.

mod delayed;
mod metrics;
mod order;
pub mod rate_limiter;

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;

use oarlock_flow_control::clock;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;

use self::delayed::{Delay, Delayed};
use self::metrics::CaughtMetrics;
pub use self::metrics::{MetricsProvider, NoMetrics, UNFINISHED_PERIOD, WorkQueueMetrics};
pub use self::order::Order;
pub use self::rate_limiter::RateLimiter;

/// The queue does not free memory for fewer keys than this.
const SMALL: usize = 64;

/// A work queue. Clones share it.
pub struct WorkQueue<K> {
    shared: Arc<WorkQueueShared<K>>,
}

/// The configuration of a work queue.
pub struct Config<K> {
    /// The order of keys. The default is first in, first out.
    pub order: Box<dyn Order<K>>,
    /// The delays of failed keys.
    pub rate_limiter: Box<dyn RateLimiter<K>>,
    /// The receiver of metrics.
    pub metrics: Arc<dyn WorkQueueMetrics>,
}

struct WorkQueueShared<K> {
    state: Mutex<WorkQueueState<K>>,
    metrics: CaughtMetrics,
    /// Wakes when a key was added, or the shutdown started.
    arrived: Notify,
    /// Wakes when no key is in process, or the shutdown started.
    drained: Notify,
}

/// Every key in `queue` is in `dirty` and not in `processing`.
struct WorkQueueState<K> {
    queue: Box<dyn Order<K>>,
    /// The keys that need processing, and since when.
    dirty: HashMap<K, Instant>,
    /// The keys in process, and since when.
    processing: HashMap<K, Instant>,
    delayed: Delayed<K>,
    rate_limiter: Box<dyn RateLimiter<K>>,
    shutdown: Shutdown,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shutdown {
    Not,
    Now,
    Draining,
}

// === impl Config ===

impl<K: Clone + Eq + Hash + Send + 'static> Default for Config<K> {
    fn default() -> Self {
        let order = Box::new(VecDeque::new());
        Self { order, rate_limiter: rate_limiter::default(), metrics: Arc::new(NoMetrics) }
    }
}

impl<K: Clone + Eq + Hash + Send + 'static> Config<K> {
    /// Returns the default with the metrics of a queue of this name; no metrics for an empty name.
    #[must_use]
    pub fn named(name: &str, provider: &dyn MetricsProvider) -> Self {
        match name {
            "" => Self::default(),
            name => Self { metrics: provider.metrics(name), ..Self::default() },
        }
    }
}

// === impl WorkQueue ===

impl<K> Clone for WorkQueue<K> {
    fn clone(&self) -> Self {
        Self { shared: self.shared.clone() }
    }
}

impl<K: Clone + Eq + Hash + Send + 'static> Default for WorkQueue<K> {
    fn default() -> Self {
        Self::new(Config::default())
    }
}

impl<K: Clone + Eq + Hash> WorkQueue<K> {
    /// Returns an empty queue.
    #[must_use]
    pub fn new(config: Config<K>) -> Self {
        let Config { order, rate_limiter, metrics } = config;
        let state = WorkQueueState {
            queue: order,
            dirty: HashMap::new(),
            processing: HashMap::new(),
            delayed: Delayed::default(),
            rate_limiter,
            shutdown: Shutdown::Not,
        };
        let shared = WorkQueueShared {
            state: Mutex::new(state),
            metrics: CaughtMetrics(metrics),
            arrived: Notify::new(),
            drained: Notify::new(),
        };
        Self { shared: Arc::new(shared) }
    }

    /// Adds a key. Does nothing if the key waits already, or during the shutdown.
    pub fn add(&self, key: K) {
        let mut state = self.shared.state.lock();
        if state.shutdown == Shutdown::Not {
            self.add_locked(&mut state, key, Instant::now());
        }
    }

    /// Adds a key after `delay`. Of two delays for one key the earlier one counts; [`WorkQueue::add`] does
    /// not cancel a delay.
    pub fn add_after(&self, key: K, delay: Duration) {
        self.delay(key, delay, Delay::Added);
    }

    /// Like [`WorkQueue::add_after`], but the delay ends without effect when a worker gets the key before:
    /// that was the retry. Client-go has no such delay; there a key runs once more for each old failure.
    pub fn retry_after(&self, key: K, delay: Duration) {
        self.delay(key, delay, Delay::Retry);
    }

    fn delay(&self, key: K, delay: Duration, why: Delay) {
        let mut state = self.shared.state.lock();
        if state.shutdown != Shutdown::Not {
            return;
        }
        self.shared.metrics.retried();
        let now = Instant::now();
        if delay.is_zero() {
            self.add_locked(&mut state, key, now);
            return;
        }
        state.delayed.insert(key, clock::after(now, delay), why);
        drop(state);
        // Every waiting caller must compute its timeout again.
        self.shared.arrived.notify_waiters();
    }

    /// Adds a key after the delay of the rate limiter, which grows until [`WorkQueue::forget`].
    pub fn add_rate_limited(&self, key: K) {
        let delay = self.shared.state.lock().rate_limiter.when(&key);
        self.add_after(key, delay);
    }

    /// Makes the rate limiter forget the failures of a key. The worker must call [`WorkQueue::done`] too.
    pub fn forget(&self, key: &K) {
        self.shared.state.lock().rate_limiter.forget(key);
    }

    /// Returns the number of [`WorkQueue::add_rate_limited`] of a key since it was forgotten.
    #[must_use]
    pub fn n_requeues(&self, key: &K) -> u32 {
        self.shared.state.lock().rate_limiter.n_requeues(key)
    }

    /// Waits for a key. The caller must call [`WorkQueue::done`] for it. Returns `None` when the queue is
    /// shut down and empty.
    ///
    /// Cancel safe: a dropped wait loses no key.
    pub async fn get(&self) -> Option<K> {
        loop {
            let arrived = self.shared.arrived.notified();
            tokio::pin!(arrived);
            // From here on the wait misses no wake-up.
            arrived.as_mut().enable();
            let next_due = {
                let mut state = self.shared.state.lock();
                self.add_due(&mut state);
                if let Some(key) = self.take(&mut state) {
                    return Some(key);
                }
                if state.shutdown != Shutdown::Not {
                    return None;
                }
                state.delayed.next_due()
            };
            match next_due {
                Some(due) => {
                    tokio::select! {
                        () = arrived => {}
                        () = tokio::time::sleep_until(due) => {}
                    }
                }
                None => arrived.await,
            }
        }
    }

    /// Begins the processing of a key that the caller knows, without [`WorkQueue::get`]. The caller must call
    /// [`WorkQueue::done`] for it. Returns false, and does nothing, if the key waits or is in process.
    #[must_use]
    pub fn begin(&self, key: K) -> bool {
        let mut state = self.shared.state.lock();
        let now = Instant::now();
        if state.dirty.contains_key(&key) || state.processing.contains_key(&key) {
            return false;
        }
        state.delayed.end_retry(&key);
        state.processing.insert(key, now);
        true
    }

    /// Ends the processing of a key. A key that was added meanwhile waits again. Does nothing for a key that
    /// is not in process.
    pub fn done(&self, key: &K) {
        let mut state = self.shared.state.lock();
        let Some((key, since)) = state.processing.remove_entry(key) else { return };
        self.shared.metrics.worked(since.elapsed());
        if state.dirty.contains_key(&key) {
            state.queue.push(key);
            self.shared.arrived.notify_one();
        }
        if state.processing.is_empty() {
            self.shared.drained.notify_waiters();
            state.shrink();
        }
    }

    /// Returns the number of waiting keys, without delayed keys and keys in process.
    #[must_use]
    pub fn len(&self) -> usize {
        let mut state = self.shared.state.lock();
        self.add_due(&mut state);
        state.queue.len()
    }

    /// Returns true if no key waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns true if a key waits, is delayed or is in process.
    #[must_use]
    pub fn holds(&self, key: &K) -> bool {
        let state = self.shared.state.lock();
        state.dirty.contains_key(key) || state.processing.contains_key(key) || state.delayed.contains(key)
    }

    /// Returns the number of delayed keys.
    #[must_use]
    pub fn n_delayed(&self) -> usize {
        self.shared.state.lock().delayed.len()
    }

    /// Returns for how long the oldest of the waiting keys has waited: since it was added, or since its delay
    /// ended. Zero if none waits. Keys in process do not count. Looks at every waiting key.
    #[must_use]
    pub fn oldest_age(&self) -> Duration {
        let mut state = self.shared.state.lock();
        self.add_due(&mut state);
        let WorkQueueState { dirty, processing, .. } = &*state;
        let oldest = dirty.iter().fold(None, |oldest: Option<Instant>, (key, since)| {
            let is_older = oldest.is_none_or(|oldest| *since < oldest) && !processing.contains_key(key);
            if is_older { Some(*since) } else { oldest }
        });
        oldest.map(|since| since.elapsed()).unwrap_or_default()
    }

    /// Returns the processing times of the keys in process: the sum and the longest.
    #[must_use]
    pub fn unfinished(&self) -> (Duration, Duration) {
        let state = self.shared.state.lock();
        let running = || state.processing.values().map(Instant::elapsed);
        (running().sum(), running().max().unwrap_or_default())
    }

    /// Publishes the unfinished work twice a second, until the shutdown. One task should run it.
    pub async fn report_unfinished(&self) {
        while !self.is_shutting_down() {
            let (together, longest) = self.unfinished();
            self.shared.metrics.unfinished(together, longest);
            tokio::select! {
                biased;
                () = self.shutting_down() => return,
                () = tokio::time::sleep(UNFINISHED_PERIOD) => {}
            }
        }
    }

    /// Starts the shutdown: the queue takes no more keys and drops delayed keys; workers still get the
    /// waiting keys.
    pub fn shut_down(&self) {
        self.begin_shutdown(Shutdown::Now);
    }

    /// Like [`WorkQueue::shut_down`], then waits until no key is in process. A call of `shut_down` ends the
    /// wait.
    pub async fn shut_down_with_drain(&self) {
        self.begin_shutdown(Shutdown::Draining);
        loop {
            let drained = self.shared.drained.notified();
            tokio::pin!(drained);
            drained.as_mut().enable();
            {
                let state = self.shared.state.lock();
                if state.processing.is_empty() || state.shutdown == Shutdown::Now {
                    return;
                }
            }
            drained.await;
        }
    }

    /// Returns true after the start of the shutdown.
    #[must_use]
    pub fn is_shutting_down(&self) -> bool {
        self.shared.state.lock().shutdown != Shutdown::Not
    }

    async fn shutting_down(&self) {
        loop {
            let drained = self.shared.drained.notified();
            tokio::pin!(drained);
            drained.as_mut().enable();
            if self.is_shutting_down() {
                return;
            }
            drained.await;
        }
    }

    fn begin_shutdown(&self, shutdown: Shutdown) {
        let mut state = self.shared.state.lock();
        // Delayed keys that are due count as added.
        self.add_due(&mut state);
        state.shutdown = shutdown;
        state.delayed = Delayed::default();
        drop(state);
        self.shared.arrived.notify_waiters();
        self.shared.drained.notify_waiters();
    }

    fn add_locked(&self, state: &mut WorkQueueState<K>, key: K, now: Instant) {
        let is_processing = state.processing.contains_key(&key);
        if state.dirty.contains_key(&key) {
            if !is_processing {
                state.queue.touch(&key);
            }
            return;
        }
        state.dirty.insert(key.clone(), now);
        self.shared.metrics.added();
        self.shared.metrics.depth(state.dirty.len());
        if !is_processing {
            state.queue.push(key);
            self.shared.arrived.notify_one();
        }
    }

    fn add_due(&self, state: &mut WorkQueueState<K>) {
        let now = Instant::now();
        while let Some((due, key)) = state.delayed.pop_due(now) {
            self.add_locked(state, key, due);
        }
    }

    fn take(&self, state: &mut WorkQueueState<K>) -> Option<K> {
        let key = state.queue.pop()?;
        state.delayed.end_retry(&key);
        let now = Instant::now();
        if let Some(since) = state.dirty.remove(&key) {
            self.shared.metrics.waited(now - since);
        }
        self.shared.metrics.depth(state.dirty.len());
        state.processing.insert(key.clone(), now);
        Some(key)
    }
}

// === impl WorkQueueState ===

impl<K: Clone + Eq + Hash> WorkQueueState<K> {
    /// Frees memory after a burst.
    fn shrink(&mut self) {
        let n_dirty = self.dirty.len();
        if self.dirty.capacity() > SMALL && n_dirty < self.dirty.capacity() / 8 {
            let wanted = SMALL.max(n_dirty * 2);
            self.dirty.shrink_to(wanted);
            self.queue.shrink_to(wanted);
            self.processing.shrink_to(wanted);
        }
    }
}

#[cfg(test)]
mod tests;

//! A queue of keys to work on: each at most once, never one twice at a time, retried with back-off.
//!
//! What is behind a key is looked up when it is worked on; the queue holds keys only. A key that is added while it waits is
//! not added again; one that is added while it is worked on runs once more afterwards.
//!
//! Nothing runs in the background: keys that were added for later are moved in by whoever waits in [`WorkQueue::get`].

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

use self::delayed::Delayed;
use self::metrics::Told;
pub use self::metrics::{MetricsProvider, NoMetrics, UNFINISHED_PERIOD, WorkQueueMetrics};
pub use self::order::Order;
pub use self::rate_limiter::RateLimiter;

/// Below this many keys the queue never bothers to give memory back.
const SMALL: usize = 64;

/// A handle on a work queue; clones are handles on the same one.
pub struct WorkQueue<K> {
    shared: Arc<Shared<K>>,
}

/// How a work queue is made.
pub struct Config<K> {
    /// In which order keys are handed out: first come, first served, unless said otherwise.
    pub order: Box<dyn Order<K>>,
    /// How long a key that failed waits.
    pub rate_limiter: Box<dyn RateLimiter<K>>,
    /// Who is told what happens.
    pub metrics: Arc<dyn WorkQueueMetrics>,
}

struct Shared<K> {
    state: Mutex<State<K>>,
    metrics: Told,
    /// A key came, or the queue began to shut down.
    arrived: Notify,
    /// No key is worked on any more, or the queue began to shut down.
    drained: Notify,
}

/// Every key in `queue` is in `dirty` and not in `processing`.
struct State<K> {
    queue: Box<dyn Order<K>>,
    /// Keys that need work, and since when.
    dirty: HashMap<K, Instant>,
    /// Keys that are worked on, and since when.
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
    /// Returns the usual ways, with the metrics that a provider has for a queue of this name; without a name there are none.
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
    /// Makes an empty queue.
    #[must_use]
    pub fn new(config: Config<K>) -> Self {
        let Config { order, rate_limiter, metrics } = config;
        let state = State {
            queue: order,
            dirty: HashMap::new(),
            processing: HashMap::new(),
            delayed: Delayed::default(),
            rate_limiter,
            shutdown: Shutdown::Not,
        };
        let shared = Shared {
            state: Mutex::new(state),
            metrics: Told(metrics),
            arrived: Notify::new(),
            drained: Notify::new(),
        };
        Self { shared: Arc::new(shared) }
    }

    /// Adds a key. Ignored when it waits already, or the queue is shutting down.
    pub fn add(&self, key: K) {
        let mut state = self.shared.state.lock();
        if state.shutdown == Shutdown::Not {
            self.add_locked(&mut state, key, Instant::now());
        }
    }

    /// Adds a key once `delay` has passed. Of two delays for one key the earlier end counts; a plain add in between does not cancel it.
    pub fn add_after(&self, key: K, delay: Duration) {
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
        state.delayed.insert(key, clock::after(now, delay));
        drop(state);
        // All who wait have to look anew how long.
        self.shared.arrived.notify_waiters();
    }

    /// Adds a key after as long as the rate limiter says, which is longer each time until [`WorkQueue::forget`].
    pub fn add_rate_limited(&self, key: K) {
        let delay = self.shared.state.lock().rate_limiter.when(&key);
        self.add_after(key, delay);
    }

    /// Makes the rate limiter forget the key's failures. [`WorkQueue::done`] is needed all the same.
    pub fn forget(&self, key: &K) {
        self.shared.state.lock().rate_limiter.forget(key);
    }

    /// Returns how often the key was added by [`WorkQueue::add_rate_limited`] since it was last forgotten.
    #[must_use]
    pub fn n_requeues(&self, key: &K) -> u32 {
        self.shared.state.lock().rate_limiter.n_requeues(key)
    }

    /// Waits for a key; whoever gets it has to call [`WorkQueue::done`]. `None` once the queue is shutting down and empty.
    ///
    /// Cancelling the wait loses nothing.
    pub async fn get(&self) -> Option<K> {
        loop {
            let arrived = self.shared.arrived.notified();
            tokio::pin!(arrived);
            // From here on no wake-up is missed, also with several waiting.
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

    /// Ends the work on a key. If it was added meanwhile, it waits again. Ignored for a key that is not worked on.
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

    /// Returns how many keys wait to be handed out, without those that are worked on or were added for later.
    #[must_use]
    pub fn len(&self) -> usize {
        let mut state = self.shared.state.lock();
        self.add_due(&mut state);
        state.queue.len()
    }

    /// Whether no key waits to be handed out.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether a key waits, now or for later, or is worked on.
    #[must_use]
    pub fn holds(&self, key: &K) -> bool {
        let state = self.shared.state.lock();
        state.dirty.contains_key(key) || state.processing.contains_key(key) || state.delayed.contains(key)
    }

    /// Returns how many keys were added for later.
    #[must_use]
    pub fn n_delayed(&self) -> usize {
        self.shared.state.lock().delayed.len()
    }

    /// Returns for how long the keys that are worked on have been, together and the longest.
    #[must_use]
    pub fn unfinished(&self) -> (Duration, Duration) {
        let state = self.shared.state.lock();
        let running = || state.processing.values().map(Instant::elapsed);
        (running().sum(), running().max().unwrap_or_default())
    }

    /// Tells the metrics of unfinished work, twice a second, until the queue shuts down. It is for one task to wait for.
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

    /// Begins to shut down: nothing is added any more, what was added for later is dropped, what waits is still handed out.
    pub fn shut_down(&self) {
        self.begin_shutdown(Shutdown::Now);
    }

    /// As [`WorkQueue::shut_down`], then waits until no key is worked on. A plain `shut_down` meanwhile ends the wait.
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

    /// Whether the queue is shutting down.
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
        // What was due by now had been added.
        self.add_due(&mut state);
        state.shutdown = shutdown;
        state.delayed = Delayed::default();
        drop(state);
        self.shared.arrived.notify_waiters();
        self.shared.drained.notify_waiters();
    }

    fn add_locked(&self, state: &mut State<K>, key: K, now: Instant) {
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

    fn add_due(&self, state: &mut State<K>) {
        let now = Instant::now();
        while let Some((due, key)) = state.delayed.pop_due(now) {
            self.add_locked(state, key, due);
        }
    }

    fn take(&self, state: &mut State<K>) -> Option<K> {
        let key = state.queue.pop()?;
        let now = Instant::now();
        if let Some(since) = state.dirty.remove(&key) {
            self.shared.metrics.waited(now - since);
        }
        self.shared.metrics.depth(state.dirty.len());
        state.processing.insert(key.clone(), now);
        Some(key)
    }
}

// === impl State ===

impl<K: Clone + Eq + Hash> State<K> {
    /// Gives memory back after a burst.
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

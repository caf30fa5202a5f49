//! One plugin's work queue: the informer crate's queue with a bound, parked keys and deferred keys.
//!
//! It belongs to the plugin, not to one of its generations: keys that wait survive a trap and a swap, since a
//! key holds nothing that could be outdated.

mod causes;
mod key;
mod keys;
mod order;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use oarlock_informer::toolkit::workqueue::{self, RateLimiter, WorkQueue, WorkQueueMetrics};
use oarlock_plugin::contract::{self, ThrottledInfo, WorkKey};
use oarlock_plugin::guest::HostBytes;
use oarlock_plugin::guest::host_bytes::{Charge, Use};
use parking_lot::Mutex;

use self::causes::Causes;
pub(crate) use self::key::Key;
pub(super) use self::keys::Keys;
use self::order::{InitialKeys, NewKeysFirst};
use super::due_call::Outcome;
use super::read_sets::ReadSets;
use crate::status::{PARKED_SHOWN, QueueStats};
use crate::traces::{self, Cause};

/// The most keys that a queue may hold: waiting, delayed, parked or being worked on.
const LIMIT: usize = 100_000;

/// A handle on one plugin's queue. Clones are handles on the same queue.
#[derive(Clone)]
pub(crate) struct PluginQueue(Arc<PluginQueueShared>);

struct PluginQueueShared {
    keys: WorkQueue<Key>,
    state: Mutex<PluginQueueState>,
    /// How many calls are in progress that show the plugin what exists already, and how many others.
    replays: AtomicUsize,
    events: AtomicUsize,
    initial_keys: InitialKeys,
    read_sets: ReadSets,
    causes: Causes,
}

/// How many events had added a key when it was last taken to work on. A replay is no event.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct KeyVersion(u64);

/// The events of a key that the queue holds.
#[derive(Debug, Default)]
struct KeyEvents {
    /// How many events have added the key.
    n: u64,
    /// The value of `n` when the key was last taken. Events since then are news to the call about the key.
    taken: KeyVersion,
    /// The newest version of an object that named the key, by which a replay that shows news is known.
    newest_object: u64,
    /// The key was taken, and the work on it has not ended.
    is_worked_on: bool,
}

#[derive(Default)]
struct PluginQueueState {
    /// All keys that are anywhere in the queue.
    held: HashMap<Key, KeyEvents>,
    /// The bytes of these keys, charged to the plugin's account.
    charge: Option<Charge>,
    /// Failures in a row.
    failures: HashMap<Key, u32>,
    parked: HashSet<Key>,
    /// Keys in crash back-off.
    deferred: HashSet<Key>,
}

/// A limiter that nothing asks: the dispatcher counts the failures of keys, and computes their delays.
struct NoRetries;

// === impl PluginQueue ===

impl PluginQueue {
    /// Creates an empty queue that reports to the metrics and charges its keys to the plugin's account.
    #[must_use]
    pub(crate) fn new(account: &HostBytes, metrics: Arc<dyn WorkQueueMetrics>) -> Self {
        let charge = |what| account.charge(what, 0).ok();
        let state = PluginQueueState { charge: charge(Use::WorkQueue), ..PluginQueueState::default() };
        Self::with(metrics, state, ReadSets::default().charged(charge(Use::ReadSets)))
    }

    fn with(metrics: Arc<dyn WorkQueueMetrics>, state: PluginQueueState, read_sets: ReadSets) -> Self {
        let initial_keys = InitialKeys::default();
        let order = Box::new(NewKeysFirst::new(initial_keys.clone()));
        let config = workqueue::Config { order, rate_limiter: Box::new(NoRetries), metrics };
        Self(Arc::new(PluginQueueShared {
            keys: WorkQueue::new(config),
            state: Mutex::new(state),
            replays: AtomicUsize::new(0),
            events: AtomicUsize::new(0),
            initial_keys,
            read_sets,
            causes: Causes::default(),
        }))
    }

    /// Returns what the keys have read.
    pub(crate) fn read_sets(&self) -> &ReadSets {
        &self.0.read_sets
    }

    /// Returns the sampled events that queued the keys.
    pub(super) fn causes(&self) -> &Causes {
        &self.0.causes
    }

    /// Adds a key because something changed that it read. That is an event.
    ///
    /// # Errors
    ///
    /// As [`PluginQueue::add`].
    pub(super) fn wake(&self, key: &Key, cause: Option<Cause>) -> Result<(), contract::Error> {
        self.add_key(&mut self.0.state.lock(), key, None, false, cause)?.n += 1;
        Ok(())
    }

    /// Adds a key, now or after a delay. A key that the queue holds already can always be added. That is an
    /// event, unless the plugin handles a replay, or the call about the key adds it: a call that adds its own
    /// key at each try and then costs the instance would never be parked.
    ///
    /// # Errors
    ///
    /// `throttled` when the queue holds too many keys, or the plugin's account has no room for another
    /// one.
    pub(crate) fn add(&self, key: WorkKey, delay: Option<Duration>) -> Result<(), contract::Error> {
        let key = Key::from(key);
        let mut state = self.0.state.lock();
        let is_replaying = self.is_replaying();
        let is_only_call = self.n_calls() == 1;
        let events = self.add_key(&mut state, &key, delay, is_replaying, traces::current_cause())?;
        let is_own = events.is_worked_on && is_only_call;
        if !is_replaying && !is_own {
            events.n += 1;
        }
        Ok(())
    }

    /// Adds the key that an object names, like [`PluginQueue::add`]. The key of an initial add waits behind
    /// those of new events. An initial add is an event only if its object is newer than all objects that
    /// named the key before: the notification of that version was dropped.
    pub(super) fn add_for(
        &self,
        key: WorkKey,
        resource_version: &str,
        is_initial: bool,
        cause: Option<Cause>,
    ) -> Result<(), contract::Error> {
        let version = resource_version.parse().unwrap_or(0);
        let key = Key::from(key);
        let mut state = self.0.state.lock();
        let events = self.add_key(&mut state, &key, None, is_initial, cause)?;
        if !is_initial || version > events.newest_object {
            events.n += 1;
        }
        events.newest_object = version.max(events.newest_object);
        Ok(())
    }

    fn add_key<'a>(
        &self,
        state: &'a mut PluginQueueState,
        key: &Key,
        delay: Option<Duration>,
        is_initial: bool,
        cause: Option<Cause>,
    ) -> Result<&'a mut KeyEvents, contract::Error> {
        let is_held = state.held.contains_key(key);
        if !is_held {
            if state.held.len() >= LIMIT {
                let message = format!("{LIMIT} keys wait in the work queue");
                return Err(contract::Error::Throttled(ThrottledInfo { message, retry_after_ms: None }));
            }
            if let Some(charge) = &mut state.charge {
                charge.grow(key.cost())?;
            }
        }
        if !is_initial {
            self.0.initial_keys.lock().remove(key);
        } else if !is_held {
            self.0.initial_keys.lock().insert(key.clone());
        }
        if let Some(cause) = cause {
            self.0.causes.add(key, cause);
        }
        match delay {
            Some(delay) => self.0.keys.add_after(key.clone(), delay),
            None => self.0.keys.add(key.clone()),
        }
        Ok(state.held.entry(key.clone()).or_default())
    }

    /// Notes that a call began. Keys that the plugin adds while all calls in progress are replays are no
    /// events.
    pub(super) fn call_begins(&self, is_replay: bool) {
        self.counter(is_replay).fetch_add(1, Ordering::Relaxed);
    }

    /// Notes that a call ended.
    pub(super) fn call_ends(&self, is_replay: bool) {
        self.counter(is_replay).fetch_sub(1, Ordering::Relaxed);
    }

    fn counter(&self, is_replay: bool) -> &AtomicUsize {
        if is_replay { &self.0.replays } else { &self.0.events }
    }

    /// Returns whether the plugin handles a replay and nothing else.
    fn is_replaying(&self) -> bool {
        self.0.replays.load(Ordering::Relaxed) > 0 && self.0.events.load(Ordering::Relaxed) == 0
    }

    /// Returns how many calls are in progress.
    fn n_calls(&self) -> usize {
        self.0.replays.load(Ordering::Relaxed) + self.0.events.load(Ordering::Relaxed)
    }

    /// Returns the version at which the key was last taken.
    pub(super) fn version(&self, key: &Key) -> KeyVersion {
        self.0.state.lock().held.get(key).map(|events| events.taken).unwrap_or_default()
    }

    /// Returns the keys to work on.
    pub(super) fn keys(&self) -> Keys {
        Keys::new(self.clone())
    }

    async fn next(&self) -> Key {
        match self.0.keys.get().await {
            Some(key) => {
                let mut state = self.0.state.lock();
                state.take(&key);
                if !state.parked.is_empty() {
                    state.parked.remove(&key);
                }
                if !state.deferred.is_empty() {
                    state.deferred.remove(&key);
                }
                drop(state);
                self.0.initial_keys.lock().remove(&key);
                key
            }
            // The queue is never shut down while a caller waits.
            None => std::future::pending().await,
        }
    }

    /// Takes a deferred key to work on; [`PluginQueue::finish`] must follow. Returns whether the key was
    /// deferred. A key that was added since is not taken: it comes out of the queue.
    pub(super) fn take_deferred(&self, key: &Key) -> bool {
        let mut state = self.0.state.lock();
        // In process, it does not come out of the queue a second time before the work on it ends.
        let is_taken =
            state.deferred.contains(key) && self.0.keys.begin(key.clone()) && state.deferred.remove(key);
        if is_taken {
            state.take(key);
        }
        is_taken
    }

    /// Takes every key that is ready, as if the work on it were done.
    #[cfg(test)]
    pub(crate) fn take_ready(&self) -> Vec<Key> {
        use futures::FutureExt as _;
        let mut taken = Vec::new();
        while let Some(key) = self.next().now_or_never() {
            self.finish(&key, Outcome::Done);
            taken.push(key);
        }
        taken
    }

    /// Ends the work on a key.
    pub(super) fn finish(&self, key: &Key, outcome: Outcome) {
        // The lock is held to the end, so that a key that is added meanwhile stays held.
        let mut state = self.0.state.lock();
        if let Some(events) = state.held.get_mut(key) {
            events.is_worked_on = false;
        }
        match outcome {
            Outcome::Done | Outcome::RequeueAfter(_) => {
                if !state.failures.is_empty() {
                    state.failures.remove(key);
                }
            }
            Outcome::RetryAfter(_) => *state.failures.entry(key.clone()).or_default() += 1,
            Outcome::Park => {
                state.failures.remove(key);
                state.parked.insert(key.clone());
            }
            Outcome::Defer => {
                state.deferred.insert(key.clone());
            }
            Outcome::Cancelled => {}
        }
        self.0.keys.done(key);
        match outcome {
            Outcome::Done if !self.0.keys.holds(key) => state.release(key),
            Outcome::Done | Outcome::Defer | Outcome::Park => {}
            Outcome::RequeueAfter(after) => self.0.keys.add_after(key.clone(), after),
            // An event may be earlier. If its call ends otherwise, this one must not follow.
            Outcome::RetryAfter(after) => self.0.keys.retry_after(key.clone(), after),
            Outcome::Cancelled => self.0.keys.add_after(key.clone(), Duration::ZERO),
        }
    }

    /// Frees the memory that is kept for the next keys.
    pub(super) fn free_spare(&self) {
        let mut state = self.0.state.lock();
        let PluginQueueState { held, charge: _, failures, parked, deferred } = &mut *state;
        [parked, deferred].into_iter().for_each(HashSet::shrink_to_fit);
        held.shrink_to_fit();
        failures.shrink_to_fit();
        drop(state);
        self.0.initial_keys.lock().shrink_to_fit();
    }

    /// Returns how many calls in a row failed for the key.
    pub(super) fn n_failures(&self, key: &Key) -> u32 {
        self.0.state.lock().failures.get(key).copied().unwrap_or(0)
    }

    /// Tries all parked keys again. Returns how many.
    pub(super) fn retry_parked(&self) -> usize {
        let parked = self.parked();
        let n_parked = parked.len();
        parked.into_iter().for_each(|key| self.0.keys.add(key));
        n_parked
    }

    /// Tries all keys again whose last calls failed, and forgets how many did.
    pub(super) fn retry_failed(&self) {
        let failures = std::mem::take(&mut self.0.state.lock().failures);
        failures.into_keys().for_each(|key| self.0.keys.add(key));
    }

    /// Tries one parked key again. Returns whether it was parked.
    pub(super) fn retry_parked_key(&self, key: &Key) -> bool {
        let is_parked = self.0.state.lock().parked.contains(key);
        if is_parked {
            self.0.keys.add(key.clone());
        }
        is_parked
    }

    /// Returns the parked keys.
    pub(super) fn parked(&self) -> Vec<Key> {
        self.0.state.lock().parked.iter().cloned().collect()
    }

    pub(super) fn n_parked(&self) -> usize {
        self.0.state.lock().parked.len()
    }

    /// Makes all deferred keys ready.
    pub(super) fn release_deferred(&self) {
        let deferred = std::mem::take(&mut self.0.state.lock().deferred);
        deferred.into_iter().for_each(|key| self.0.keys.add(key));
    }

    /// Returns the state of the queue of a plugin with so many lanes.
    pub(super) fn stats(&self, lanes: usize) -> QueueStats {
        let state = self.0.state.lock();
        let ready = self.0.keys.len();
        let delayed = self.0.keys.n_delayed() + state.deferred.len();
        let oldest = self.0.keys.oldest_age();
        let (unfinished, longest) = self.0.keys.unfinished();
        let calls = self.n_calls();
        let mut parked_keys: Vec<_> = state.parked.iter().take(PARKED_SHOWN).map(Key::to_string).collect();
        parked_keys.sort();
        let wakes_by_any_change = self.0.read_sets.n_any();
        QueueStats {
            pending: (ready + delayed) as u64,
            ready: ready as u64,
            delayed: delayed as u64,
            parked: state.parked.len() as u64,
            parked_keys,
            oldest_ms: u64::try_from(oldest.as_millis()).unwrap_or(u64::MAX),
            wakes_by_any_change,
            unfinished,
            longest,
            calls: calls as u64,
            lanes: lanes as u64,
        }
    }
}

// === impl NoRetries ===

impl RateLimiter<Key> for NoRetries {
    fn when(&mut self, _: &Key) -> Duration {
        Duration::ZERO
    }

    fn forget(&mut self, _: &Key) {}

    fn n_requeues(&self, _: &Key) -> u32 {
        0
    }
}

// === impl PluginQueueState ===

impl PluginQueueState {
    /// Notes that a key was taken to work on.
    fn take(&mut self, key: &Key) {
        if let Some(events) = self.held.get_mut(key) {
            events.taken = KeyVersion(events.n);
            events.is_worked_on = true;
        }
    }

    /// Releases the bytes of a key that the queue does not hold any more.
    fn release(&mut self, key: &Key) {
        if self.held.remove(key).is_some()
            && let Some(charge) = &mut self.charge
        {
            charge.shrink(key.cost());
        }
        if self.held.is_empty() {
            self.held = HashMap::new();
        }
    }
}

#[cfg(test)]
impl PluginQueue {
    /// Returns how many keys are charged.
    pub(super) fn n_held(&self) -> usize {
        self.0.state.lock().held.len()
    }
}

#[cfg(test)]
impl Default for PluginQueue {
    fn default() -> Self {
        Self::with(Arc::new(workqueue::NoMetrics), PluginQueueState::default(), ReadSets::default())
    }
}

#[cfg(test)]
mod tests;

//! One plugin's work queue: the informer crate's, with a bound, and with dead letters.
//!
//! It belongs to the plugin, not to one version of it: what waits survives a trap and a swap, since a key says nothing that could be outdated.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use oarlock_informer::work_queue::{self, WorkQueue, WorkQueueMetrics};
use oarlock_plugin::HostBytes;
use oarlock_plugin::contract::{self, WorkKey};
use oarlock_plugin::host_bytes::{Charge, Use};
use parking_lot::Mutex;

use crate::status::{PARKED_SHOWN, QueueStats};

/// Keys that a queue may hold: waiting, delayed, parked or being worked on.
const LIMIT: usize = 100_000;

/// About what a key takes beside its texts, which all the places that it stands in share.
const KEY_COST: usize = 320;

/// A handle on one plugin's queue. Clones are handles on the same one.
#[derive(Clone, Default)]
pub struct PluginQueue {
    keys: WorkQueue<Key>,
    record: Arc<Mutex<Record>>,
}

/// What to reconcile: the contract's work key, which can be looked up.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub(crate) struct Key(Arc<KeyTexts>);

#[derive(Debug, Eq, Hash, PartialEq)]
pub(crate) struct KeyTexts {
    pub(crate) kind: String,
    pub(crate) namespace: String,
    pub(crate) name: String,
}

/// What becomes of a key that was worked on.
#[derive(Clone, Copy, Debug)]
pub(super) enum Outcome {
    Done,
    RequeueAfter(Duration),
    /// It failed, and is tried again.
    Failed(Duration),
    /// It was not worked on after all.
    Again(Duration),
    /// It waits until [`PluginQueue::take_deferred`] asks for it.
    Defer,
    /// It failed too often, or for good.
    Park,
}

#[derive(Default)]
struct Record {
    /// All keys that are anywhere in the queue.
    held: HashSet<Key>,
    /// What they take, on the plugin's account.
    charge: Option<Charge>,
    /// In a row, by key.
    failures: HashMap<Key, u32>,
    parked: HashSet<Key>,
    /// Those that wait until they are asked for.
    deferred: HashSet<Key>,
    /// The newest version of an object that named the key, for the keys that wait or failed.
    versions: HashMap<Key, Version>,
    is_replaying: bool,
}

/// What changes with everything that is news for a key, but not with a replay.
#[derive(Clone, Copy, Default)]
struct Version {
    /// The newest version of an object that named the key.
    object: u64,
    /// How often the plugin itself added the key while it was parked.
    n_added: u64,
}

// === impl PluginQueue ===

impl PluginQueue {
    /// Makes an empty queue that tells of its keys, which are charged to the plugin's account.
    #[must_use]
    pub fn new(account: &HostBytes, metrics: Arc<dyn WorkQueueMetrics>) -> Self {
        let keys = WorkQueue::new(work_queue::Config { metrics, ..work_queue::Config::default() });
        let queue = Self { keys, record: Arc::default() };
        queue.record.lock().charge = account.charge(Use::WorkQueue, 0).ok();
        queue
    }

    /// Adds a key, now or after a delay. `limit-exceeded` when too many wait, or the plugin's account has no
    /// room for it. There is always room for a key that is in the queue already.
    pub fn add(&self, key: WorkKey, delay: Option<Duration>) -> Result<(), contract::Error> {
        let key = Key::from(key);
        {
            let mut record = self.record.lock();
            if record.parked.contains(&key) && !record.is_replaying {
                record.versions.entry(key.clone()).or_default().n_added += 1;
            }
        }
        self.add_key(&key, delay)
    }

    fn add_key(&self, key: &Key, delay: Option<Duration>) -> Result<(), contract::Error> {
        let mut record = self.record.lock();
        if !record.held.contains(key) {
            if record.held.len() >= LIMIT {
                return Err(contract::Error::LimitExceeded(format!("{LIMIT} keys wait in the work queue")));
            }
            if let Some(charge) = &mut record.charge {
                charge.grow(key.cost())?;
            }
            record.held.insert(key.clone());
        }
        match delay {
            Some(delay) => self.keys.add_after(key.clone(), delay),
            None => self.keys.add(key.clone()),
        }
        Ok(())
    }

    /// Says whether the plugin is called with what is not news: keys that it adds meanwhile are no events.
    pub(super) fn set_replaying(&self, is_replaying: bool) {
        self.record.lock().is_replaying = is_replaying;
    }

    /// Adds the key that an object names, as [`PluginQueue::add`]. The object's version becomes the key's if it is newer.
    pub(super) fn add_for(&self, key: WorkKey, resource_version: &str) -> Result<(), contract::Error> {
        let version = resource_version.parse().unwrap_or(0);
        let key = Key::from(key);
        self.add_key(&key, None)?;
        let mut record = self.record.lock();
        let newest = record.versions.entry(key).or_default();
        newest.object = version.max(newest.object);
        Ok(())
    }

    /// What changes with everything that is news for the key.
    pub(super) fn version(&self, key: &Key) -> String {
        let Version { object, n_added } = self.record.lock().versions.get(key).copied().unwrap_or_default();
        format!("{object} {n_added}")
    }

    /// Waits for a key to work on; [`PluginQueue::finish`] must follow. Cancelling the wait loses nothing.
    pub(super) async fn next(&self) -> Key {
        match self.keys.get().await {
            Some(key) => {
                let mut record = self.record.lock();
                record.parked.remove(&key);
                record.deferred.remove(&key);
                drop(record);
                key
            }
            // It is never shut down while someone waits.
            None => std::future::pending().await,
        }
    }

    /// Takes a key that was deferred, to work on; [`PluginQueue::finish`] must follow. Answers whether it was.
    pub(super) fn take_deferred(&self, key: &Key) -> bool {
        self.record.lock().deferred.remove(key)
    }

    /// Ends the work on a key.
    pub(super) fn finish(&self, key: &Key, outcome: Outcome) {
        // Held to the end: a key that is added meanwhile is still held, or again.
        let mut record = self.record.lock();
        match outcome {
            Outcome::Done | Outcome::RequeueAfter(_) => {
                record.failures.remove(key);
                record.versions.remove(key);
            }
            Outcome::Failed(_) => *record.failures.entry(key.clone()).or_default() += 1,
            Outcome::Park => {
                record.failures.remove(key);
                record.parked.insert(key.clone());
            }
            Outcome::Defer => {
                record.deferred.insert(key.clone());
            }
            Outcome::Again(_) => {}
        }
        self.keys.done(key);
        match outcome {
            Outcome::Done if !self.keys.holds(key) => record.let_go(key),
            Outcome::Done | Outcome::Defer | Outcome::Park => {}
            Outcome::Again(after) | Outcome::RequeueAfter(after) | Outcome::Failed(after) => {
                self.keys.add_after(key.clone(), after);
            }
        }
    }

    /// How often in a row the key failed.
    pub(super) fn failures(&self, key: &Key) -> u32 {
        self.record.lock().failures.get(key).copied().unwrap_or(0)
    }

    /// Tries all dead letters again.
    pub(super) fn retry_parked(&self) {
        let parked: Vec<_> = self.record.lock().parked.iter().cloned().collect();
        parked.into_iter().for_each(|key| self.keys.add(key));
    }

    /// Makes what was deferred wait like all others.
    pub(super) fn release_deferred(&self) {
        let deferred = std::mem::take(&mut self.record.lock().deferred);
        deferred.into_iter().for_each(|key| self.keys.add(key));
    }

    pub(super) fn stats(&self) -> QueueStats {
        let record = self.record.lock();
        let pending = self.keys.len() + self.keys.n_delayed() + record.deferred.len();
        let mut parked_keys: Vec<_> = record.parked.iter().take(PARKED_SHOWN).map(Key::to_string).collect();
        parked_keys.sort();
        QueueStats { pending: pending as u64, parked: record.parked.len() as u64, parked_keys }
    }
}

// === impl Record ===

impl Record {
    /// Gives back what a key took that is nowhere in the queue any more.
    fn let_go(&mut self, key: &Key) {
        if self.held.remove(key)
            && let Some(charge) = &mut self.charge
        {
            charge.shrink(key.cost());
        }
        if self.held.is_empty() {
            self.held = HashSet::new();
        }
    }
}

// === impl Key ===

impl Key {
    pub(super) fn to_contract(&self) -> WorkKey {
        let KeyTexts { kind, namespace, name } = &*self.0;
        let object = contract::ObjectKey { namespace: namespace.clone(), name: name.clone() };
        WorkKey { kind: kind.clone(), object }
    }

    /// About how many bytes it takes.
    fn cost(&self) -> usize {
        KEY_COST + self.kind.len() + self.namespace.len() + self.name.len()
    }
}

impl Deref for Key {
    type Target = KeyTexts;

    fn deref(&self) -> &KeyTexts {
        &self.0
    }
}

impl From<WorkKey> for Key {
    fn from(key: WorkKey) -> Self {
        let WorkKey { kind, object: contract::ObjectKey { namespace, name } } = key;
        Self(Arc::new(KeyTexts { kind, namespace, name }))
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let KeyTexts { kind, namespace, name } = &*self.0;
        if namespace.is_empty() { write!(f, "{kind} {name}") } else { write!(f, "{kind} {namespace}/{name}") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn promise_4_dead_letters_count_towards_the_bound() {
        let queue = PluginQueue::default();
        let key = |n: usize| WorkKey {
            kind: "it".into(),
            object: contract::ObjectKey { namespace: String::new(), name: n.to_string() },
        };
        for n in 0..LIMIT {
            queue.add(key(n), None).unwrap();
            let next = queue.next().await;
            queue.finish(&next, Outcome::Park);
        }
        assert!(matches!(queue.add(key(LIMIT), None), Err(contract::Error::LimitExceeded(_))));
    }

    #[tokio::test(start_paused = true)]
    async fn promise_4_a_plugin_cannot_fill_the_hosts_memory_with_keys() {
        let account = HostBytes::new(4 << 20);
        let queue = PluginQueue::new(&account, Arc::new(work_queue::NoMetrics));
        let key = |n: usize| WorkKey {
            kind: "k".repeat(300),
            object: contract::ObjectKey { namespace: String::new(), name: format!("{n:0340}") },
        };
        let delay = |n: usize| n.is_multiple_of(2).then_some(Duration::from_secs(1_000_000));
        let n_keys = (0..).take_while(|n| queue.add(key(*n), delay(*n)).is_ok()).count();
        let refused = queue.add(key(n_keys), None);
        assert!(matches!(refused, Err(contract::Error::LimitExceeded(_))), "{refused:?}");
        assert!(n_keys > 4_000 && account.view().work_queue <= 4 << 20, "{n_keys} {:?}", account.view());
        // What is there already may be added again, and takes nothing more.
        queue.add(key(0), None).unwrap();
        queue.add(key(1), None).unwrap();
        let before = account.view().work_queue;
        for _ in 0..1_000 {
            let next = queue.next().await;
            queue.add(next.to_contract(), Some(Duration::from_secs(5))).unwrap();
            queue.finish(&next, Outcome::Done);
        }
        assert_eq!(account.view().work_queue, before, "they wait for later");
        tokio::time::advance(Duration::from_secs(2_000_000)).await;
        for _ in 0..n_keys {
            let next = queue.next().await;
            queue.finish(&next, Outcome::Done);
        }
        assert_eq!(account.view().work_queue, 0);
        queue.add(key(n_keys), None).unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn a_key_that_the_plugin_adds_is_news_unless_it_handles_a_replay() {
        let queue = PluginQueue::default();
        let key = WorkKey {
            kind: "it".into(),
            object: contract::ObjectKey { namespace: String::new(), name: "a".into() },
        };
        queue.add(key.clone(), None).unwrap();
        let next = queue.next().await;
        queue.finish(&next, Outcome::Park);
        let parked = queue.version(&next);
        queue.set_replaying(true);
        queue.add(key.clone(), None).unwrap();
        assert_eq!(queue.version(&queue.next().await), parked);
        queue.finish(&next, Outcome::Park);
        queue.set_replaying(false);
        queue.add(key, None).unwrap();
        assert_ne!(queue.version(&queue.next().await), parked);
        queue.finish(&next, Outcome::Defer);
        assert_eq!(queue.stats().pending, 1);
        assert!(queue.take_deferred(&next) && !queue.take_deferred(&next));
        queue.finish(&next, Outcome::Done);
        assert_eq!(queue.stats().pending, 0);
    }
}

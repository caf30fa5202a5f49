//! One plugin's work queue: the informer crate's, with a bound, and with dead letters.
//!
//! It belongs to the plugin, not to one version of it: what waits survives a trap and a swap, since a key says nothing that could be outdated.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use oarlock_informer::WorkQueue;
use oarlock_plugin::contract::{self, WorkKey};
use parking_lot::Mutex;

use crate::status::{PARKED_SHOWN, QueueStats};

/// Keys that may wait, now or for later.
const LIMIT: usize = 100_000;

/// A handle on one plugin's queue. Clones are handles on the same one.
#[derive(Clone, Default)]
pub struct PluginQueue {
    keys: WorkQueue<Key>,
    record: Arc<Mutex<Record>>,
}

/// What to reconcile: the contract's work key, which can be looked up.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub(crate) struct Key {
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
    /// It failed too often, or for good.
    Park,
}

#[derive(Default)]
struct Record {
    /// In a row, by key.
    failures: HashMap<Key, u32>,
    parked: HashSet<Key>,
    /// The newest version of an object that named the key, for the keys that wait or failed.
    versions: HashMap<Key, u64>,
}

// === impl PluginQueue ===

impl PluginQueue {
    /// Adds a key, now or after a delay. `limit-exceeded` when too many wait.
    pub fn add(&self, key: WorkKey, delay: Option<Duration>) -> Result<(), contract::Error> {
        let n_parked = self.record.lock().parked.len();
        if self.keys.len() + self.keys.n_delayed() + n_parked >= LIMIT {
            return Err(contract::Error::LimitExceeded(format!("{LIMIT} keys wait in the work queue")));
        }
        let key = Key::from(key);
        match delay {
            Some(delay) => self.keys.add_after(key, delay),
            None => self.keys.add(key),
        }
        Ok(())
    }

    /// Adds the key that an object names, as [`PluginQueue::add`]. The object's version becomes the key's if it is newer.
    pub(super) fn add_for(&self, key: WorkKey, resource_version: &str) -> Result<(), contract::Error> {
        let version = resource_version.parse().unwrap_or(0);
        let key = Key::from(key);
        self.add(key.to_contract(), None)?;
        let mut record = self.record.lock();
        let newest = record.versions.entry(key).or_default();
        *newest = version.max(*newest);
        Ok(())
    }

    /// What changes with the objects that name the key, but not when they are told again.
    pub(super) fn version(&self, key: &Key) -> String {
        self.record.lock().versions.get(key).map(u64::to_string).unwrap_or_default()
    }

    /// Waits for a key to work on; [`PluginQueue::finish`] must follow. Cancelling the wait loses nothing.
    pub(super) async fn next(&self) -> Key {
        match self.keys.get().await {
            Some(key) => {
                self.record.lock().parked.remove(&key);
                key
            }
            // It is never shut down while someone waits.
            None => std::future::pending().await,
        }
    }

    /// Ends the work on a key.
    pub(super) fn finish(&self, key: &Key, outcome: Outcome) {
        {
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
                Outcome::Again(_) => {}
            }
        }
        self.keys.done(key);
        match outcome {
            Outcome::Done | Outcome::Park => {}
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

    pub(super) fn stats(&self) -> QueueStats {
        let pending = self.keys.len() + self.keys.n_delayed();
        let record = self.record.lock();
        let mut parked_keys: Vec<_> = record.parked.iter().take(PARKED_SHOWN).map(Key::to_string).collect();
        parked_keys.sort();
        QueueStats { pending: pending as u64, parked: record.parked.len() as u64, parked_keys }
    }
}

// === impl Key ===

impl Key {
    pub(super) fn to_contract(&self) -> WorkKey {
        let Self { kind, namespace, name } = self.clone();
        WorkKey { kind, object: contract::ObjectKey { namespace, name } }
    }
}

impl From<WorkKey> for Key {
    fn from(key: WorkKey) -> Self {
        let WorkKey { kind, object: contract::ObjectKey { namespace, name } } = key;
        Self { kind, namespace, name }
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, namespace, name } = self;
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
}

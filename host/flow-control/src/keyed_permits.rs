//! Permits with a limit in all and a limit for each key.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Limits how much is done at once: in all, and for each key, so that slow work of one key does not delay
/// that of the others.
#[derive(Debug)]
pub struct KeyedPermits<K> {
    all: Arc<Semaphore>,
    per_key: usize,
    /// Entries whose last permit was dropped are dead.
    keys: Mutex<BTreeMap<K, Weak<Semaphore>>>,
}

/// A permit, until it is dropped.
#[derive(Debug)]
pub struct KeyedPermit {
    // A semaphore that is never closed always gives a permit.
    _of_key: Option<OwnedSemaphorePermit>,
    _of_all: Option<OwnedSemaphorePermit>,
}

// === impl KeyedPermits ===

impl<K: Clone + Ord> KeyedPermits<K> {
    /// Creates permits: so many in all, and so many of each key.
    #[must_use]
    pub fn new(in_all: usize, per_key: usize) -> Self {
        Self { all: Arc::new(Semaphore::new(in_all)), per_key, keys: Mutex::default() }
    }

    /// Waits for a permit. Permits of one key are given in the order of the calls.
    pub async fn acquire(&self, key: &K) -> KeyedPermit {
        // The order matters: what waits for a permit of its key uses none of the others.
        let of_key = self.of(key).acquire_owned().await.ok();
        let of_all = self.all.clone().acquire_owned().await.ok();
        KeyedPermit { _of_key: of_key, _of_all: of_all }
    }

    fn of(&self, key: &K) -> Arc<Semaphore> {
        let mut keys = self.keys.lock();
        if let Some(found) = keys.get(key).and_then(Weak::upgrade) {
            return found;
        }
        keys.retain(|_, it| it.strong_count() > 0);
        let made = Arc::new(Semaphore::new(self.per_key));
        keys.insert(key.clone(), Arc::downgrade(&made));
        made
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    #[tokio::test]
    async fn a_key_that_uses_all_its_permits_does_not_delay_another() {
        let permits = KeyedPermits::new(6, 4);
        let mut held = Vec::new();
        for _ in 0..4 {
            held.push(permits.acquire(&"slow").now_or_never().expect("a permit"));
        }
        assert!(permits.acquire(&"slow").now_or_never().is_none(), "it waits for its own permits");
        assert!(permits.acquire(&"other").now_or_never().is_some());
        held.pop();
        assert!(permits.acquire(&"slow").now_or_never().is_some());
    }

    #[tokio::test]
    async fn all_keys_together_have_a_limit() {
        let permits = KeyedPermits::new(2, 2);
        let _held = [permits.acquire(&1).await, permits.acquire(&2).await];
        assert!(permits.acquire(&3).now_or_never().is_none());
    }

    #[tokio::test]
    async fn keys_whose_permits_were_dropped_are_forgotten() {
        let permits = KeyedPermits::new(1, 1);
        for n in 0..100 {
            permits.acquire(&n).await;
        }
        assert_eq!(permits.keys.lock().len(), 1);
    }
}

//! How many specs are resolved at once: in all, and of each namespace, so that the slow registry of one
//! tenant does not delay the plugins of the others.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The most specs that are resolved at once. Most of the time is spent waiting for registries.
const IN_ALL: usize = 64;

/// The most of one namespace, or of the ClusterPlugins.
const PER_NAMESPACE: usize = 4;

/// Decides which specs are resolved now.
pub(super) struct Turns {
    all: Arc<Semaphore>,
    /// By namespace: none for ClusterPlugins. Entries whose last turn has ended are dead.
    namespaces: Mutex<BTreeMap<Option<Arc<str>>, Weak<Semaphore>>>,
}

/// The right to resolve a spec, until it is dropped.
pub(super) struct Turn {
    _of_namespace: OwnedSemaphorePermit,
    _of_all: OwnedSemaphorePermit,
}

// === impl Turns ===

impl Turns {
    pub(super) fn new() -> Self {
        Self { all: Arc::new(Semaphore::new(IN_ALL)), namespaces: Mutex::default() }
    }

    /// Waits for a turn. Turns of one namespace are given in the order of the calls.
    pub(super) async fn take(&self, namespace: Option<&Arc<str>>) -> Option<Turn> {
        // The order matters: a key that waits for the turn of its namespace uses no other turn.
        let of_namespace = self.of(namespace).acquire_owned().await.ok()?;
        let of_all = self.all.clone().acquire_owned().await.ok()?;
        Some(Turn { _of_namespace: of_namespace, _of_all: of_all })
    }

    fn of(&self, namespace: Option<&Arc<str>>) -> Arc<Semaphore> {
        let mut namespaces = self.namespaces.lock();
        let key = namespace.cloned();
        if let Some(found) = namespaces.get(&key).and_then(Weak::upgrade) {
            return found;
        }
        namespaces.retain(|_, it| it.strong_count() > 0);
        let made = Arc::new(Semaphore::new(PER_NAMESPACE));
        namespaces.insert(key, Arc::downgrade(&made));
        made
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    #[tokio::test]
    async fn a_namespace_that_uses_all_its_turns_does_not_delay_another() {
        let turns = Turns::new();
        let (slow, other): (Arc<str>, Arc<str>) = ("slow".into(), "other".into());
        let mut held = Vec::new();
        for _ in 0..PER_NAMESPACE {
            held.push(turns.take(Some(&slow)).now_or_never().flatten().expect("a turn"));
        }
        assert!(turns.take(Some(&slow)).now_or_never().is_none(), "it waits for its own turns");
        assert!(turns.take(Some(&other)).now_or_never().is_some());
        assert!(turns.take(None).now_or_never().is_some(), "ClusterPlugins have their own");
        held.pop();
        assert!(turns.take(Some(&slow)).now_or_never().is_some());
    }

    #[tokio::test]
    async fn namespaces_whose_turns_have_ended_are_forgotten() {
        let turns = Turns::new();
        for n in 0..100 {
            let namespace: Arc<str> = format!("team-{n}").into();
            assert!(turns.take(Some(&namespace)).await.is_some());
        }
        assert_eq!(turns.namespaces.lock().len(), 1);
    }
}

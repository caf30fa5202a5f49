//! The objects of one resource, and their recent changes.

use super::{Compacted, Stored};
use std::collections::{BTreeMap, HashSet, VecDeque};
use std::ops::Bound;
use std::sync::Arc;
use tokio::sync::watch;

/// Keys have etcd's order: by the bytes of `namespace/name`.
#[derive(Debug)]
pub(super) struct Collection {
    objects: BTreeMap<Arc<str>, Arc<Stored>>,
    history: VecDeque<Arc<Change>>,
    /// Changes up to and including this revision are no longer in the history.
    compacted: u64,
    /// The revision at which the resource was last removed from the API; 0 if never.
    dropped_at: u64,
    changed: watch::Sender<u64>,
}

/// One write.
#[derive(Debug)]
pub(crate) struct Change {
    pub(crate) revision: u64,
    pub(crate) kind: ChangeKind,
    /// The new state. For a removal, the last state at the revision of the removal.
    pub(crate) object: Arc<Stored>,
    pub(crate) previous: Option<Arc<Stored>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ChangeKind {
    Added,
    Modified,
    Deleted,
}

// === impl Collection ===

impl Collection {
    pub(super) fn new(compacted: u64) -> Self {
        Self {
            objects: BTreeMap::new(),
            history: VecDeque::new(),
            compacted,
            dropped_at: 0,
            changed: watch::Sender::new(0),
        }
    }

    pub(super) fn get(&self, key: &str) -> Option<&Arc<Stored>> {
        self.objects.get(key)
    }

    pub(super) fn subscribe(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    /// Returns the objects under a prefix, in order.
    pub(super) fn objects(&self, prefix: &str) -> impl Iterator<Item = &Arc<Stored>> {
        self.objects
            .range::<str, _>((Bound::Included(prefix), Bound::Unbounded))
            .take_while(move |(key, _)| key.starts_with(prefix))
            .map(|(_, object)| object)
    }

    /// Returns the objects under a prefix at a revision, by undoing the later changes.
    pub(super) fn objects_at(&self, prefix: &str, at: u64) -> Result<Vec<Arc<Stored>>, Compacted> {
        let later = self.history_after(at)?;
        let mut objects: BTreeMap<&str, &Arc<Stored>> =
            self.objects(prefix).map(|object| (&*object.key, object)).collect();
        let mut undone = HashSet::new();
        for change in later.filter(|change| change.object.key.starts_with(prefix)) {
            let key = &*change.object.key;
            // The first change after `at` has the state before it.
            if undone.insert(key) {
                match &change.previous {
                    Some(previous) => objects.insert(key, previous),
                    None => objects.remove(key),
                };
            }
        }
        Ok(objects.into_values().cloned().collect())
    }

    pub(super) fn changes_after(&self, after: u64, limit: usize) -> Result<Vec<Arc<Change>>, Compacted> {
        Ok(self.history_after(after)?.take(limit).cloned().collect())
    }

    fn history_after(&self, after: u64) -> Result<impl Iterator<Item = &Arc<Change>>, Compacted> {
        if after < self.compacted {
            return Err(Compacted { oldest: self.compacted });
        }
        let start = self.history.partition_point(|change| change.revision <= after);
        Ok(self.history.range(start..))
    }

    pub(super) fn put(&mut self, object: Arc<Stored>, limit: usize) {
        let previous = self.objects.insert(object.key.clone(), object.clone());
        let kind = if previous.is_some() { ChangeKind::Modified } else { ChangeKind::Added };
        self.record(Change { revision: object.revision, kind, object, previous }, limit);
    }

    pub(super) fn remove(&mut self, object: Arc<Stored>, limit: usize) {
        if let Some(previous) = self.objects.remove(&object.key) {
            let previous = Some(previous);
            self.record(
                Change { revision: object.revision, kind: ChangeKind::Deleted, object, previous },
                limit,
            );
        }
    }

    fn record(&mut self, change: Change, limit: usize) {
        let revision = change.revision;
        self.history.push_back(Arc::new(change));
        self.trim(limit);
        self.changed.send_replace(revision);
    }

    pub(super) fn trim(&mut self, limit: usize) {
        while self.history.len() > limit {
            if let Some(oldest) = self.history.pop_front() {
                self.compacted = oldest.revision;
            }
        }
    }

    pub(super) fn dropped_at(&self) -> u64 {
        self.dropped_at
    }

    /// Records that the resource is no longer served. The history stays, so that watches can send the last
    /// events.
    pub(super) fn drop_at(&mut self, revision: u64) {
        self.dropped_at = revision;
        self.changed.send_replace(revision);
    }

    pub(super) fn compact(&mut self, revision: u64) {
        self.history.clear();
        self.compacted = revision;
    }
}

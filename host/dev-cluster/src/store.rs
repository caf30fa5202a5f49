//! The memory of the server: every object in its serialised form, one revision counter, and a history per resource.
//!
//! All writes pass one lock, so a [`Transaction`] sees and changes a consistent state; each of its writes has a
//! revision of its own. Reads clone `Arc`s under the lock and serialise nothing. Nothing is kept on disk.

mod collection;
mod stored;

pub(crate) use collection::{Change, ChangeKind};
pub(crate) use stored::Stored;

use crate::resource::Resource;
use crate::status::GroupResource;
use collection::Collection;
use parking_lot::Mutex;
use serde_json::Value;
use std::collections::HashMap;
use std::sync::Arc;
use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::watch;

#[derive(Debug)]
pub(crate) struct Store {
    inner: Mutex<Inner>,
    /// The newest revision, for those who wait for one.
    revision: watch::Sender<u64>,
}

#[derive(Debug)]
struct Inner {
    revision: u64,
    history_limit: usize,
    /// No history from before this revision, not even of resources without objects.
    compacted: u64,
    collections: HashMap<GroupResource, Collection>,
    /// Who wants to know of what concerns owners and what they own.
    notices: Option<UnboundedSender<Notice>>,
}

/// A write of an object that has an owner, may be one, or waits for what it owns.
#[derive(Debug)]
pub(crate) struct Notice {
    pub(crate) storage: GroupResource,
    pub(crate) object: Arc<Stored>,
    pub(crate) removed: bool,
}

/// Objects as they were at one revision.
pub(crate) struct Snapshot {
    pub(crate) revision: u64,
    pub(crate) objects: Vec<Arc<Stored>>,
}

/// What happened to a resource after some revision.
pub(crate) struct Changes {
    pub(crate) changes: Vec<Arc<Change>>,
    /// Everything up to this revision is in `changes` (or was before).
    pub(crate) up_to: u64,
    /// When the resource ceased to be served last; 0 if it never did.
    pub(crate) dropped_at: u64,
}

/// The revision asked for is no longer in the history.
#[derive(Debug, PartialEq)]
pub(crate) struct Compacted {
    /// The oldest revision from which the history is complete.
    pub(crate) oldest: u64,
}

/// A consistent view of the store that can be written to.
pub(crate) struct Transaction<'a> {
    inner: &'a mut Inner,
    dry_run: bool,
}

// === impl Store ===

impl Store {
    pub(crate) fn new(history_limit: usize) -> Self {
        let inner =
            Inner { revision: 1, history_limit, compacted: 0, collections: HashMap::new(), notices: None };
        Self { inner: Mutex::new(inner), revision: watch::Sender::new(1) }
    }

    /// Sends a notice of every write that concerns owners, from now on.
    pub(crate) fn send_notices(&self, to: UnboundedSender<Notice>) {
        self.inner.lock().notices = Some(to);
    }

    pub(crate) fn revision(&self) -> u64 {
        self.inner.lock().revision
    }

    /// Returns a receiver of the newest revision.
    pub(crate) fn subscribe(&self) -> watch::Receiver<u64> {
        self.revision.subscribe()
    }

    /// Returns a receiver that sees every change of one resource, as the revision of its last change.
    pub(crate) fn subscribe_to(&self, storage: &GroupResource) -> watch::Receiver<u64> {
        self.inner.lock().collection(storage).subscribe()
    }

    pub(crate) fn get(&self, storage: &GroupResource, key: &str) -> Option<Arc<Stored>> {
        self.inner.lock().collections.get(storage)?.get(key).cloned()
    }

    /// Returns the objects whose key starts with `prefix`, now or as they were at revision `at`.
    pub(crate) fn snapshot(
        &self,
        storage: &GroupResource,
        prefix: &str,
        at: Option<u64>,
    ) -> Result<Snapshot, Compacted> {
        let mut inner = self.inner.lock();
        let revision = at.unwrap_or(inner.revision);
        let objects = match at {
            Some(at) if at < inner.revision => inner.collection(storage).objects_at(prefix, at)?,
            _ => inner.collection(storage).objects(prefix).cloned().collect(),
        };
        Ok(Snapshot { revision, objects })
    }

    /// Returns what happened after revision `after`, `limit` changes at most.
    pub(crate) fn changes(
        &self,
        storage: &GroupResource,
        after: u64,
        limit: usize,
    ) -> Result<Changes, Compacted> {
        let mut inner = self.inner.lock();
        let revision = inner.revision;
        let collection = inner.collection(storage);
        let changes = collection.changes_after(after, limit)?;
        let dropped_at = collection.dropped_at();
        let up_to = match changes.last() {
            Some(last) if changes.len() == limit => last.revision,
            _ => revision.max(after),
        };
        Ok(Changes { changes, up_to, dropped_at })
    }

    /// Returns when the resource ceased to be served last; 0 if it never did.
    pub(crate) fn dropped_at(&self, storage: &GroupResource) -> u64 {
        self.inner.lock().collection(storage).dropped_at()
    }

    /// Changes how many events of each resource are remembered, from now on.
    pub(crate) fn set_history_limit(&self, limit: usize) {
        let mut inner = self.inner.lock();
        inner.history_limit = limit;
        for collection in inner.collections.values_mut() {
            collection.trim(limit);
        }
    }

    /// Forgets the whole history: every older revision is expired afterwards.
    pub(crate) fn compact(&self) {
        let mut inner = self.inner.lock();
        let revision = inner.revision;
        inner.compacted = revision;
        for collection in inner.collections.values_mut() {
            collection.compact(revision);
        }
    }

    /// Runs `work` on a state that nobody else changes meanwhile. With `dry_run` nothing of it is kept.
    pub(crate) fn transact<T>(&self, dry_run: bool, work: impl FnOnce(&mut Transaction<'_>) -> T) -> T {
        let mut inner = self.inner.lock();
        let result = work(&mut Transaction { inner: &mut inner, dry_run });
        let revision = inner.revision;
        drop(inner);
        self.revision.send_if_modified(|seen| {
            let newer = revision > *seen;
            *seen = revision.max(*seen);
            newer
        });
        result
    }
}

// === impl Inner ===

impl Inner {
    fn notify(&self, resource: &Resource, object: &Arc<Stored>, removed: bool) {
        if let Some(notices) = &self.notices {
            // Without a receiver the server is ending.
            let _ =
                notices.send(Notice { storage: resource.storage.clone(), object: object.clone(), removed });
        }
    }

    fn collection(&mut self, storage: &GroupResource) -> &mut Collection {
        // A resource that nobody wrote yet has a complete, empty history.
        self.collections.entry(storage.clone()).or_insert_with(|| Collection::new(self.compacted))
    }
}

// === impl Transaction ===

impl Transaction<'_> {
    pub(crate) fn revision(&self) -> u64 {
        self.inner.revision
    }

    pub(crate) fn get(&self, storage: &GroupResource, key: &str) -> Option<Arc<Stored>> {
        self.inner.collections.get(storage)?.get(key).cloned()
    }

    /// Returns the objects whose key starts with `prefix`.
    pub(crate) fn objects(&self, storage: &GroupResource, prefix: &str) -> Vec<Arc<Stored>> {
        let collection = self.inner.collections.get(storage);
        collection.map(|c| c.objects(prefix).cloned().collect()).unwrap_or_default()
    }

    /// Writes an object under the next revision, and returns it as stored.
    pub(crate) fn put(&mut self, resource: &Resource, key: &str, value: Value) -> Arc<Stored> {
        let revision = self.next_revision(resource, key);
        let stored = Arc::new(Stored::new(resource, key, value, revision));
        if !self.dry_run {
            self.inner.revision = revision;
            let limit = self.inner.history_limit;
            let had_owners = self.inner.notices.is_some()
                && self.get(&resource.storage, key).is_some_and(|previous| !previous.owners.is_empty());
            self.inner.collection(&resource.storage).put(stored.clone(), limit);
            if had_owners || !stored.owners.is_empty() || stored.waits_for_dependents {
                self.inner.notify(resource, &stored, false);
            }
        }
        stored
    }

    /// A dry run shows the version that is there, or none.
    fn next_revision(&self, resource: &Resource, key: &str) -> u64 {
        if self.dry_run {
            return self.get(&resource.storage, key).map(|current| current.revision).unwrap_or(0);
        }
        self.inner.revision + 1
    }

    /// Removes an object under the next revision; `last` is its last state, which the event carries.
    pub(crate) fn remove(&mut self, resource: &Resource, key: &str, last: Value) -> Arc<Stored> {
        let revision = self.next_revision(resource, key);
        let stored = Arc::new(Stored::new(resource, key, last, revision));
        if !self.dry_run {
            self.inner.revision = revision;
            let limit = self.inner.history_limit;
            self.inner.collection(&resource.storage).remove(stored.clone(), limit);
            self.inner.notify(resource, &stored, true);
        }
        stored
    }

    /// Notes, under a revision of its own, that a resource is no longer served; its watches end.
    pub(crate) fn drop_resource(&mut self, storage: &GroupResource) {
        if !self.dry_run {
            self.inner.revision += 1;
            let revision = self.inner.revision;
            self.inner.collection(storage).drop_at(revision);
        }
    }
}

#[cfg(test)]
mod tests;

//! The in-memory storage: every object as serialized JSON, one revision counter, and a history per resource.
//!
//! All writes take one lock, so a [`Transaction`] reads and writes a consistent state; each write has its own
//! revision. Reads clone `Arc`s under the lock and serialize nothing. Nothing is written to disk.

mod collection;
mod stored;

pub(crate) use collection::{Change, ChangeKind};
pub(crate) use stored::Stored;

#[cfg(test)]
use crate::generated::Clock;
use crate::generated::Generated;
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
    /// The newest revision, for tasks that wait for one.
    revision: watch::Sender<u64>,
    generated: Generated,
}

#[derive(Debug)]
struct Inner {
    revision: u64,
    history_limit: usize,
    /// No resource has history up to this revision, not even resources without objects.
    compacted: u64,
    collections: HashMap<GroupResource, Collection>,
    /// Receives a notice of each write that concerns owners.
    notices: Option<UnboundedSender<Notice>>,
}

/// A write of an object that has an owner, may be one, or waits for its dependents.
#[derive(Debug)]
pub(crate) struct Notice {
    pub(crate) storage: GroupResource,
    pub(crate) object: Arc<Stored>,
    pub(crate) removed: bool,
}

/// The objects at one revision.
pub(crate) struct Snapshot {
    pub(crate) revision: u64,
    pub(crate) objects: Vec<Arc<Stored>>,
}

/// The changes of a resource after a revision.
pub(crate) struct Changes {
    pub(crate) changes: Vec<Arc<Change>>,
    /// `changes` is complete up to this revision.
    pub(crate) up_to: u64,
    /// The revision at which the resource was last removed from the API; 0 if never.
    pub(crate) dropped_at: u64,
}

/// The requested revision is no longer in the history.
#[derive(Debug, PartialEq)]
pub(crate) struct Compacted {
    /// The oldest revision from which the history is complete.
    pub(crate) oldest: u64,
}

/// A consistent, writable view of the store.
pub(crate) struct Transaction<'a> {
    inner: &'a mut Inner,
    dry_run: bool,
    /// Makes uids and times.
    pub(crate) generated: &'a Generated,
}

// === impl Store ===

impl Store {
    #[cfg(test)]
    pub(crate) fn new(history_limit: usize) -> Self {
        Self::with(history_limit, Generated::new(Clock::system(), None))
    }

    pub(crate) fn with(history_limit: usize, generated: Generated) -> Self {
        let inner =
            Inner { revision: 1, history_limit, compacted: 0, collections: HashMap::new(), notices: None };
        Self { inner: Mutex::new(inner), revision: watch::Sender::new(1), generated }
    }

    /// Sends a notice of every later write that concerns owners.
    pub(crate) fn send_notices(&self, to: UnboundedSender<Notice>) {
        self.inner.lock().notices = Some(to);
    }

    pub(crate) fn revision(&self) -> u64 {
        self.inner.lock().revision
    }

    /// Returns the source of uids and times.
    pub(crate) fn generated(&self) -> &Generated {
        &self.generated
    }

    /// Returns a receiver of the newest revision.
    pub(crate) fn subscribe(&self) -> watch::Receiver<u64> {
        self.revision.subscribe()
    }

    /// Returns a receiver of the revision of one resource's last change.
    pub(crate) fn subscribe_to(&self, storage: &GroupResource) -> watch::Receiver<u64> {
        self.inner.lock().collection(storage).subscribe()
    }

    pub(crate) fn get(&self, storage: &GroupResource, key: &str) -> Option<Arc<Stored>> {
        self.inner.lock().collections.get(storage)?.get(key).cloned()
    }

    /// Returns the objects whose key starts with `prefix`, now or at revision `at`.
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

    /// Returns at most `limit` changes after revision `after`.
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

    /// Returns the revision at which the resource was last removed from the API; 0 if never.
    pub(crate) fn dropped_at(&self, storage: &GroupResource) -> u64 {
        self.inner.lock().collection(storage).dropped_at()
    }

    /// Changes the number of events that are kept per resource.
    pub(crate) fn set_history_limit(&self, limit: usize) {
        let mut inner = self.inner.lock();
        inner.history_limit = limit;
        for collection in inner.collections.values_mut() {
            collection.trim(limit);
        }
    }

    /// Forgets the whole history: every older revision is expired.
    pub(crate) fn compact(&self) {
        let mut inner = self.inner.lock();
        let revision = inner.revision;
        inner.compacted = revision;
        for collection in inner.collections.values_mut() {
            collection.compact(revision);
        }
    }

    /// Runs `work` with exclusive access. A dry run discards the changes.
    pub(crate) fn transact<T>(&self, dry_run: bool, work: impl FnOnce(&mut Transaction<'_>) -> T) -> T {
        let mut inner = self.inner.lock();
        let result = work(&mut Transaction { inner: &mut inner, dry_run, generated: &self.generated });
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
            // Without a receiver the server is shutting down.
            let _ =
                notices.send(Notice { storage: resource.storage.clone(), object: object.clone(), removed });
        }
    }

    fn collection(&mut self, storage: &GroupResource) -> &mut Collection {
        // A resource without writes has a complete, empty history.
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

    /// Writes an object at the next revision, and returns the stored object.
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

    /// A dry run returns the current version, or none.
    fn next_revision(&self, resource: &Resource, key: &str) -> u64 {
        if self.dry_run {
            return self.get(&resource.storage, key).map(|current| current.revision).unwrap_or(0);
        }
        self.inner.revision + 1
    }

    /// Removes an object at the next revision. The event carries `last`, its last state.
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

    /// Records, at a revision of its own, that a resource is no longer served. Its watches end.
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

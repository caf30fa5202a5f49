//! The queue between the reflector and the cache: client-go's DeltaFIFO.
//!
//! The reflector appends each change as a [`Delta`] to the list of its object. [`DeltaFifo::pop`] returns
//! whole lists, in the order in which their keys were first queued. A key is in the queue exactly while it
//! has deltas, and [`Deltas`] are never empty.
//!
//! [`DeltaFifo::watermark`] returns how far the consumer has come: whether it has processed the first list,
//! up to which version, and from which source.
//!
//! The queue does not wait for plugins: the consumer updates the cache and the listeners' backlogs, so the
//! queue stays short. It does not depend on an informer: the stored objects are behind the trait
//! [`KnownObjects`].

mod deltas;
mod pop;
mod progress;
mod queued_list;
mod replace;
mod state;
mod store;
mod trace;
mod transform;
mod watermark;

use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::{Notify, watch};

use crate::names::ObjectKey;
use crate::object::Object;
use crate::reflector::SourceGeneration;
use crate::resource_version::Version;
use crate::toolkit::cache::{KeyError, KeyFunction, Keyed};

pub use self::deltas::{Delta, DeltaObject, Deltas, Tombstone};
pub use self::pop::{Closed, Processed};
use self::state::DeltaFifoState;
pub(crate) use self::transform::transform;
pub use self::transform::{TransformError, Transformer};
pub(crate) use self::watermark::Ambiguous;
pub use self::watermark::Watermark;

/// An object was not queued.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The key function returned no key.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// The transformer failed.
    #[error(transparent)]
    Transform(#[from] TransformError),
}

/// The objects that the consumer of the queue has stored.
pub trait KnownObjects: Send + Sync {
    /// Returns the stored object of that key.
    fn known(&self, key: &ObjectKey) -> Option<Object>;
    /// Returns the keys of all stored objects.
    fn known_keys(&self) -> Vec<ObjectKey>;
}

/// The configuration of a [`DeltaFifo`].
#[derive(Clone, Default)]
pub struct Config {
    /// Returns the key of an object; `namespace/name` by default.
    pub key_function: KeyFunction,
    /// The objects that the consumer has stored. Without it, deletes of objects that are not queued are
    /// dropped, and a resync does nothing.
    pub known_objects: Option<Arc<dyn KnownObjects>>,
    /// Runs once on each object before it is queued; never on tombstones and on objects that a resync queues.
    /// A reflector transforms the objects of a list before it queues the list, unless the key function is a
    /// custom one.
    pub transformer: Option<Transformer>,
}

/// A queue of the changes of objects, grouped by object. See the module's documentation.
///
/// There may be many producers, but there is one consumer. Each change wakes the consumer.
pub struct DeltaFifo {
    config: Config,
    state: Mutex<DeltaFifoState>,
    /// Notified when a change is queued and when the queue is closed.
    changed: Notify,
    /// How far the consumer has come. Receivers are woken at each change; without receivers the value alone
    /// changes.
    watermark: watch::Sender<Watermark>,
}

// === impl DeltaFifo ===

impl DeltaFifo {
    /// Returns an empty, open queue.
    #[must_use]
    pub fn new(config: Config) -> Self {
        Self {
            config,
            state: Mutex::default(),
            changed: Notify::new(),
            watermark: watch::channel(Watermark::default()).0,
        }
    }

    /// Queues an object as added.
    pub fn add(&self, object: Object) -> Result<(), Error> {
        self.enqueue(object, Delta::Added)
    }

    /// Queues an object as updated.
    pub fn update(&self, object: Object) -> Result<(), Error> {
        self.enqueue(object, Delta::Updated)
    }

    /// Queues an object as deleted, with its final state.
    ///
    /// Does nothing if the object is neither queued nor known.
    pub fn delete(&self, object: Object) -> Result<(), Error> {
        let key = self.key_of(&object)?;
        let object = self.transform(object)?;
        self.delete_key(key, DeltaObject::Object(object));
        Ok(())
    }

    /// Queues an object as deleted whose delete event was missed.
    pub fn delete_tombstone(&self, tombstone: Tombstone) {
        self.delete_key(tombstone.key.clone(), DeltaObject::Tombstone(tombstone));
    }

    /// Queues each known object that is not queued. Sends no request.
    pub fn resync(&self) {
        let Some(known_objects) = &self.config.known_objects else { return };
        let mut state = self.state.lock();
        for known_key in known_objects.known_keys() {
            let Some(object) = known_objects.known(&known_key) else {
                tracing::debug!(key = %known_key, "a known object vanished during resync");
                continue;
            };
            let key = match self.key_of(&object) {
                Ok(key) => key,
                Err(error) => {
                    tracing::debug!(%error, "a known object has no key during resync");
                    continue;
                }
            };
            if !state.has(&key) {
                state.push(key, Delta::Sync(object));
            }
        }
        drop(state);
        self.changed.notify_waiters();
    }

    /// Records that everything up to this resourceVersion was queued. The watermark shows the version once
    /// all of that is processed.
    pub fn mark(&self, resource_version: &str) {
        let mut state = self.state.lock();
        if let Some(reached) = state.progress.version_queued(Version::new(resource_version)) {
            self.publish(reached);
        }
    }

    /// Records that the next list comes from another source.
    pub(crate) fn source_changed(&self, generation: SourceGeneration) {
        self.state.lock().progress.source_changed(generation);
    }

    /// Returns how far the consumer has come, as it is and as it changes. Deltas that were requeued count as
    /// processed.
    #[must_use]
    pub fn watermark(&self) -> watch::Receiver<Watermark> {
        self.watermark.subscribe()
    }

    /// Returns whether the first list, if there was one, was processed whole: after the last call of the
    /// process callback, not before. Once true, it stays true.
    #[must_use]
    pub fn has_synced(&self) -> bool {
        self.watermark.borrow().has_synced()
    }

    /// Closes the queue. The consumer can still pop all queued keys, and producers can still queue objects.
    pub fn close(&self) {
        self.state.lock().is_closed = true;
        self.changed.notify_waiters();
    }

    /// Returns how many keys are queued.
    #[must_use]
    pub fn len(&self) -> usize {
        self.state.lock().len()
    }

    /// Returns whether no key is queued.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the key of an object in this queue.
    ///
    /// # Errors
    ///
    /// When the key function returns no key.
    pub fn key_of<'a>(&self, keyed: impl Into<Keyed<'a>>) -> Result<ObjectKey, KeyError> {
        self.config.key_function.key_of(keyed)
    }

    /// Returns a copy of the deltas that are queued for a key.
    #[must_use]
    pub fn queued(&self, key: &ObjectKey) -> Option<Deltas> {
        self.state.lock().deltas(key)
    }

    /// Queues a transformed object as added or updated. `key` is its key before it was transformed.
    pub(crate) fn push_transformed(&self, key: ObjectKey, delta: Delta) {
        let mut state = self.state.lock();
        self.populate(&mut state);
        state.push(key, delta);
        drop(state);
        self.changed.notify_waiters();
    }

    fn enqueue(&self, object: Object, delta: fn(Object) -> Delta) -> Result<(), Error> {
        let key = self.key_of(&object);
        let object = self.transform(object);
        let mut state = self.state.lock();
        self.populate(&mut state);
        state.push(key?, delta(object?));
        drop(state);
        self.changed.notify_waiters();
        Ok(())
    }

    /// Queues an object as deleted, unless it is neither queued nor known. `key` is its key before it was
    /// transformed.
    pub(crate) fn delete_key(&self, key: ObjectKey, object: DeltaObject) {
        let mut state = self.state.lock();
        self.populate(&mut state);
        let newest = match state.deltas(&key) {
            Some(deltas) => match deltas.newest() {
                Delta::Deleted(_) => None,
                newest => newest.last_known().cloned(),
            },
            None => match self.config.known_objects.as_ref().and_then(|known| known.known(&key)) {
                Some(known) => Some(known),
                None => return,
            },
        };
        if let (Some(newest), DeltaObject::Object(deleted)) = (newest, &object)
            && !newest.has_uid_of(deleted)
        {
            // The deleted object is another one than the newest: the delete of the newest and the add of this
            // one were missed. Both are queued, so that no consumer receives the delete of an object that it
            // does not know.
            let missed = Tombstone { key: key.clone(), object: Some(newest) };
            state.push(key.clone(), Delta::Deleted(DeltaObject::Tombstone(missed)));
            state.push(key.clone(), Delta::Added(deleted.clone()));
        }
        state.push(key, Delta::Deleted(object));
        drop(state);
        self.changed.notify_waiters();
    }

    /// Records that something other than a list was queued. If it came first, the queue waits for no first
    /// list.
    fn populate(&self, state: &mut DeltaFifoState) {
        if !state.progress.is_populated() {
            state.progress.populated_without_list();
            self.watermark.send_modify(Watermark::sync);
        }
    }

    fn transform(&self, object: Object) -> Result<Object, TransformError> {
        transform(self.config.transformer.as_ref(), object)
    }

    /// Publishes the watermark. Called while the queue is locked, so that watermarks are published in order.
    fn publish(&self, reached: Watermark) {
        self.watermark.send_if_modified(|watermark| {
            *watermark = reached;
            // A receiver that subscribes later reads this value.
            self.watermark.receiver_count() > 0
        });
    }
}

#[cfg(test)]
mod tests;

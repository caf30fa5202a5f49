//! The write half of a cache.

use std::sync::Arc;

use parking_lot::RwLock;

use super::index::{IndexLimits, Values};
use super::{CacheState, Indexer};
use crate::names::ObjectKey;
use crate::object::Object;
use crate::resource_version::Version;
use crate::toolkit::cache::{KeyError, KeyFunction};

/// The write half of a cache. It cannot be cloned, so a cache has one writer.
pub struct IndexerWriter {
    indexer: Indexer,
    key_function: Option<KeyFunction>,
}

// === impl IndexerWriter ===

impl Default for IndexerWriter {
    fn default() -> Self {
        Self::new()
    }
}

impl IndexerWriter {
    /// Creates an empty cache. The key of an object is its namespace and name.
    #[must_use]
    pub fn new() -> Self {
        Self { indexer: Indexer { state: Arc::default() }, key_function: None }
    }

    /// Creates an empty cache whose keys a key function computes.
    ///
    /// Objects are sorted by these keys, and the namespace of an object is that of its key.
    #[must_use]
    pub fn with_key_function(key_function: KeyFunction) -> Self {
        let state = Arc::new(RwLock::new(CacheState::with_keys()));
        Self { indexer: Indexer { state }, key_function: Some(key_function) }
    }

    /// Sets the limits of the indices that are added from now on.
    pub fn limit_indices(&mut self, limits: IndexLimits) {
        self.indexer.state.write().limits = limits;
    }

    /// Returns the read half.
    #[must_use]
    pub fn indexer(&self) -> &Indexer {
        &self.indexer
    }

    /// Stores an object under its key, and returns the previous object of that key.
    ///
    /// When the key function fails, the object is not stored, and the error is logged.
    pub fn put(&mut self, object: Object) -> Option<Object> {
        self.try_put(object).unwrap_or_else(|error| {
            tracing::error!(%error, "an object was not cached: its key cannot be computed");
            None
        })
    }

    /// Stores an object under its key, and returns the previous object of that key.
    ///
    /// # Errors
    ///
    /// The key function fails. The object is not stored.
    pub fn try_put(&mut self, object: Object) -> Result<Option<Object>, KeyError> {
        let key = self.computed_key(&object)?;
        Ok(self.store(key.as_ref(), object))
    }

    /// Removes the object of a key, and returns it. A key that is not cached changes nothing.
    ///
    /// `last_state` is the object of the delete event, if one was received. Its resourceVersion becomes that
    /// of the cache.
    pub fn delete(&mut self, key: &ObjectKey, last_state: Option<&Object>) -> Option<Object> {
        let mut state = self.indexer.state.write();
        if let Some(last_state) = last_state {
            state.resource_version = Version::of(last_state);
        }
        let old = state.delete(key);
        let has_left_out = state.may_retry_left_out();
        drop(state);
        if has_left_out {
            self.indexer.retry_left_out();
        }
        old
    }

    /// Replaces all objects. Of several objects with one key the last one stays.
    ///
    /// An object whose key function fails is not stored, and the error is logged.
    pub fn replace(&mut self, objects: Vec<Object>, resource_version: &str) {
        let sources = self.indexer.state.read().sources();
        let keyed: Vec<_> = objects
            .into_iter()
            .filter_map(|object| {
                let key = self.computed_key(&object);
                key.inspect_err(
                    |error| tracing::error!(%error, "an object was not cached: its key cannot be computed"),
                )
                .ok()
                .map(|key| (key, object))
            })
            .collect();
        let filings: Vec<_> = keyed.iter().map(|(_, object)| Values::of_each(&sources, object)).collect();
        let mut state = self.indexer.state.write();
        let old = state.clear();
        for ((key, object), filings) in keyed.iter().zip(filings) {
            let slot = state.find(key.as_ref().unwrap_or(object.key()));
            state.put(key.as_ref(), slot, object.clone(), filings);
        }
        state.resource_version = Version::new(resource_version);
        drop(state);
        drop(old);
    }

    /// Returns the key that the key function computes. Without a key function it is `None`: an object has its
    /// own key.
    fn computed_key(&self, object: &Object) -> Result<Option<ObjectKey>, KeyError> {
        self.key_function.as_ref().map(|key_function| key_function.key_of(object)).transpose()
    }

    fn store(&mut self, key: Option<&ObjectKey>, object: Object) -> Option<Object> {
        let (slot, sources) = {
            let mut state = self.indexer.state.write();
            let slot = state.find(key.unwrap_or(object.key()));
            let old = slot.and_then(|slot| state.slots().get(slot));
            if old.is_some_and(|old| old.is_same(&object)) {
                // A resync, or a relist without changes: the object is stored and filed already.
                state.resource_version = Version::of(&object);
                return Some(object);
            }
            if state.indices.is_empty() {
                state.resource_version = Version::of(&object);
                let old = state.put(key, slot, object, Vec::new());
                // The text of the old object may be long, so it is freed after the lock.
                drop(state);
                return old;
            }
            (slot, state.sources())
        };
        let filed = object.clone();
        let filings = Values::of_each(&sources, &filed);
        let mut state = self.indexer.state.write();
        state.resource_version = Version::of(&object);
        // The slot is still valid, since only this writer changes slots.
        let old = state.put(key, slot, object, filings);
        let has_left_out = state.may_retry_left_out();
        drop(state);
        if has_left_out {
            self.indexer.retry_left_out();
        }
        old
    }
}

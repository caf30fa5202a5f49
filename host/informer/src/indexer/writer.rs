//! The write half of a cache.

use std::sync::Arc;

use parking_lot::RwLock;

use super::index::{Filing, IndexSource, Limits, Values};
use super::{CacheState, IndexId, Indexer};
use crate::names::ObjectKey;
use crate::object::Object;
use crate::resource_version::Version;
use crate::toolkit::cache::{KeyError, KeyFunction};

/// Changes the cache. There is one of it, and it is not cloned: nobody else can.
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
    /// Makes an empty cache, whose objects have their namespace and name as keys.
    #[must_use]
    pub fn new() -> Self {
        Self { indexer: Indexer { state: Arc::default() }, key_function: None }
    }

    /// Makes an empty cache whose objects have other keys. They are sorted by these, and where namespaces are asked for, those
    /// of the keys are meant.
    #[must_use]
    pub fn with_key_function(key_function: KeyFunction) -> Self {
        let state = Arc::new(RwLock::new(CacheState::with_keys()));
        Self { indexer: Indexer { state }, key_function: Some(key_function) }
    }

    /// Sets what indices that are added from now on may take.
    pub fn limit_indices(&mut self, limits: Limits) {
        self.indexer.state.write().limits = limits;
    }

    /// Returns the read half.
    #[must_use]
    pub fn indexer(&self) -> &Indexer {
        &self.indexer
    }

    /// Stores an object under its key, whether or not there is one; returns the one that was there. An object that the key
    /// function has no key for is logged and not stored.
    pub fn put(&mut self, object: Object) -> Option<Object> {
        self.try_put(object).unwrap_or_else(|error| {
            tracing::error!(%error, "an object is not cached");
            None
        })
    }

    /// Stores an object under its key, whether or not there is one; returns the one that was there.
    ///
    /// # Errors
    ///
    /// When the key function has no key for it.
    pub fn try_put(&mut self, object: Object) -> Result<Option<Object>, KeyError> {
        let key = self.key_of(&object)?;
        Ok(self.store(&key, object))
    }

    /// Removes the object of that key and returns it. Removing nothing changes nothing.
    ///
    /// `last_state` is what the deletion itself told, if it was seen: its resourceVersion becomes the cache's.
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

    /// Replaces everything. Of several objects with one key the last one stays.
    pub fn replace(&mut self, objects: Vec<Object>, resource_version: &str) {
        let sources = self.indexer.state.read().sources();
        let keyed: Vec<_> = objects
            .into_iter()
            .filter_map(|object| {
                let key = self.key_of(&object);
                key.inspect_err(|error| tracing::error!(%error, "an object is not cached"))
                    .ok()
                    .map(|key| (key, object))
            })
            .collect();
        let filings: Vec<_> = keyed.iter().map(|(_, object)| filings(&sources, object)).collect();
        let mut state = self.indexer.state.write();
        let old = state.clear();
        for ((key, object), filings) in keyed.iter().zip(filings) {
            state.put(key, object.clone(), filings);
        }
        state.resource_version = Version::new(resource_version);
        drop(state);
        drop(old);
    }

    fn key_of(&self, object: &Object) -> Result<ObjectKey, KeyError> {
        match &self.key_function {
            Some(key_function) => key_function.key_of(object),
            None => Ok(object.key().clone()),
        }
    }

    fn store(&mut self, key: &ObjectKey, object: Object) -> Option<Object> {
        let sources = {
            let mut state = self.indexer.state.write();
            let old = state.get(key);
            if old.is_some_and(|old| old.is_same(&object)) {
                // A resync, or a relist that changed nothing: it is filed where it belongs.
                state.resource_version = Version::of(&object);
                return Some(object);
            }
            if state.indices.is_empty() {
                state.resource_version = Version::of(&object);
                let old = state.put(key, object, Vec::new());
                // The old object's text may be long; it is freed without the lock.
                drop(state);
                return old;
            }
            state.sources()
        };
        let filed = object.clone();
        let filings = filings(&sources, &filed);
        let mut state = self.indexer.state.write();
        state.resource_version = Version::of(&object);
        let old = state.put(key, object, filings);
        let has_left_out = state.may_retry_left_out();
        drop(state);
        if has_left_out {
            self.indexer.retry_left_out();
        }
        old
    }
}

/// Computes what the object is filed under in each index, before the lock is taken.
fn filings<'o>(sources: &[(IndexId, IndexSource)], object: &'o Object) -> Vec<(IndexId, Filing<'o>)> {
    Values::of_each(sources, object)
}

//! The write half of a cache.

use super::index::{IndexError, IndexSource, Values};
use super::{IndexId, Indexer, State};
use crate::names::ObjectKey;
use crate::object::Object;

/// Changes the cache. There is one of it, and it is not cloned: nobody else can.
pub struct IndexerWriter {
    indexer: Indexer,
}

/// What an object is filed under in each index, computed before the lock is taken.
type Filings = Vec<(IndexId, Result<Values, IndexError>)>;

// === impl IndexerWriter ===

impl Default for IndexerWriter {
    fn default() -> Self {
        Self::new()
    }
}

impl IndexerWriter {
    /// Makes an empty cache.
    #[must_use]
    pub fn new() -> Self {
        Self { indexer: Indexer { state: std::sync::Arc::default() } }
    }

    /// Returns the read half.
    #[must_use]
    pub fn indexer(&self) -> &Indexer {
        &self.indexer
    }

    /// Stores an object under its key, whether or not there is one; returns the one that was there.
    pub fn put(&mut self, object: Object) -> Option<Object> {
        let old = self.indexer.get(object.key());
        if old.as_ref().is_some_and(|old| old.is_same(&object)) {
            // A resync, or a relist that changed nothing: it is filed where it belongs.
            self.indexer.state.write().resource_version = object.resource_version().into();
            return old;
        }
        let filings = self.filings(&object);
        let mut state = self.indexer.state.write();
        state.resource_version = object.resource_version().into();
        state.put(object, filings)
    }

    /// Removes the object of that key and returns it. Removing nothing changes nothing.
    ///
    /// `last_state` is what the deletion itself told, if it was seen: its resourceVersion becomes the cache's.
    pub fn delete(&mut self, key: &ObjectKey, last_state: Option<&Object>) -> Option<Object> {
        let mut state = self.indexer.state.write();
        if let Some(last_state) = last_state {
            state.resource_version = last_state.resource_version().into();
        }
        state.delete(key)
    }

    /// Replaces everything. Of several objects with one key the last one stays.
    pub fn replace(&mut self, objects: Vec<Object>, resource_version: &str) {
        let objects: Vec<_> = objects.into_iter().map(|object| (self.filings(&object), object)).collect();
        let mut state = self.indexer.state.write();
        let old = std::mem::take(&mut state.objects);
        state.bytes = 0;
        state.indices.values_mut().for_each(super::Index::clear);
        for (filings, object) in objects {
            state.put(object, filings);
        }
        state.resource_version = resource_version.into();
        drop(state);
        drop(old);
    }

    fn filings(&self, object: &Object) -> Filings {
        let sources: Vec<(IndexId, IndexSource)> = {
            let state = self.indexer.state.read();
            state.indices.iter().map(|(id, index)| (*id, index.source().clone())).collect()
        };
        sources.into_iter().map(|(id, source)| (id, Values::of(&source, object))).collect()
    }
}

// === impl State ===

impl State {
    fn put(&mut self, object: Object, mut filings: Filings) -> Option<Object> {
        let key = object.key().clone();
        for (id, index) in &mut self.indices {
            let values = match filings.iter().position(|(filed, _)| filed == id) {
                Some(position) => filings.swap_remove(position).1,
                // The index was added in this very moment.
                None => Values::of(index.source(), &object),
            };
            if let Err(error) = &values {
                // Under the cache's lock, once for every event: who wants to know asks `index_failures`.
                tracing::debug!(%key, %error, index = ?index.source(), "an object is missing from an index");
            }
            index.put(&key, values);
        }
        self.bytes += object.json_length();
        let old = self.objects.insert(key, object);
        self.bytes -= old.as_ref().map_or(0, Object::json_length);
        old
    }

    fn delete(&mut self, key: &ObjectKey) -> Option<Object> {
        let old = self.objects.remove(key)?;
        self.bytes -= old.json_length();
        self.indices.values_mut().for_each(|index| index.remove(key));
        Some(old)
    }
}

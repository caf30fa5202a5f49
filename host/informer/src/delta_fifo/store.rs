//! The queue as the store that a reflector writes into.

use super::{Delta, DeltaFifo};
use crate::names::ObjectKey;
use crate::object::Object;
use crate::reflector::{ReflectorStore, SourceGeneration, StoreError};

// === impl DeltaFifo ===

impl DeltaFifo {
    /// Returns the newest state of an object: the newest queued state, or else the known one. None if the
    /// newest delta is a delete.
    pub(crate) fn newest(&self, key: &ObjectKey) -> Option<Object> {
        let state = self.state.lock();
        match state.deltas(key) {
            Some(deltas) => match deltas.newest() {
                Delta::Deleted(_) => None,
                delta => delta.last_known().cloned(),
            },
            None => self.config.known_objects.as_ref()?.known(key),
        }
    }

    /// Returns the keys of all queued and known objects, some of them twice.
    pub(crate) fn queued_and_known_keys(&self) -> Vec<ObjectKey> {
        let mut keys = self.state.lock().all_keys();
        keys.extend(self.config.known_objects.iter().flat_map(|known| known.known_keys()));
        keys
    }
}

impl ReflectorStore for DeltaFifo {
    fn add(&self, object: Object) -> Result<(), StoreError> {
        Ok(self.add(object)?)
    }

    fn update(&self, object: Object) -> Result<(), StoreError> {
        Ok(self.update(object)?)
    }

    fn delete(&self, object: Object) -> Result<(), StoreError> {
        Ok(self.delete(object)?)
    }

    fn replace(&self, items: Vec<Object>, resource_version: &str) -> Result<(), StoreError> {
        if self.config.key_function.is_default() {
            self.replace_transformed(items, Some(resource_version))?;
        } else {
            self.replace_at(items, Some(resource_version))?;
        }
        Ok(())
    }

    fn resync(&self) -> Result<(), StoreError> {
        self.resync();
        Ok(())
    }

    fn intern(&self, object: Object) -> Object {
        let known = self.config.known_objects.as_ref().and_then(|known| known.known(object.key()));
        known.filter(|known| known.is_equal_version_of(&object)).unwrap_or(object)
    }

    /// A custom key function receives the object that the API server sent. Its objects are transformed when
    /// they are queued.
    fn transform(&self, object: Object) -> Result<Object, StoreError> {
        Ok(if self.config.key_function.is_default() { self.transform(object)? } else { object })
    }

    fn source_changed(&self, generation: SourceGeneration) {
        self.source_changed(generation);
    }

    fn newest(&self, key: &ObjectKey) -> Option<Object> {
        self.newest(key)
    }

    fn keys(&self) -> Vec<ObjectKey> {
        self.queued_and_known_keys()
    }

    fn update_resource_version(&self, resource_version: &str) {
        self.mark(resource_version);
    }
}

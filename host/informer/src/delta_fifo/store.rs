//! The queue as what a reflector writes into.

use super::DeltaFifo;
use crate::object::Object;
use crate::reflector::{ReflectorStore, StoreError};

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
            self.replace_transformed(items)?;
        } else {
            self.replace(items)?;
        }
        self.mark_list(resource_version);
        Ok(())
    }

    fn resync(&self) -> Result<(), StoreError> {
        self.resync();
        Ok(())
    }

    fn arrived(&self, object: Object) -> Object {
        let known = self.config.known_objects.as_ref().and_then(|known| known.known(object.key()));
        known.filter(|known| known.is_equal_version_of(&object)).unwrap_or(object)
    }

    /// Own keys are those of objects as they came, so these are transformed when they are queued.
    fn transformed(&self, object: Object) -> Result<Object, StoreError> {
        Ok(if self.config.key_function.is_default() { self.transform(object)? } else { object })
    }

    fn update_resource_version(&self, resource_version: &str) {
        self.mark(resource_version);
    }
}

//! The store that the reflector of an informer writes into: the delta queue.

use std::sync::Arc;

use tokio::time::Instant;

use crate::delta_fifo::{self, Delta, DeltaFifo, DeltaObject, TransformError, Transformer};
use crate::indexer::Compactor;
use crate::names::ObjectKey;
use crate::object::{Object, SharedPointers};
use crate::processor::Processor;
use crate::reflector::{ReflectorStore, SourceGeneration, StoreError};
use crate::toolkit::metrics::Publisher;

/// Transforms objects and queues them.
pub(super) struct InformerStore {
    pub(super) fifo: Arc<DeltaFifo>,
    pub(super) transformer: Option<Transformer>,
    /// Decides when listeners are resynced.
    pub(super) processor: Arc<Processor>,
    pub(super) publisher: Option<Publisher>,
    /// Compresses the objects of a list as they arrive.
    pub(super) compactor: Arc<Compactor>,
}

// === impl InformerStore ===

impl InformerStore {
    fn transform(&self, object: Object) -> Result<Object, TransformError> {
        delta_fifo::transform(self.transformer.as_ref(), object)
    }

    /// Publishes the length of the queue.
    fn publish_length(&self) {
        if let Some(publisher) = &self.publisher {
            publisher.queued(&self.fifo);
        }
    }
}

impl ReflectorStore for InformerStore {
    fn add(&self, object: Object) -> Result<(), StoreError> {
        let key = object.key().clone();
        self.fifo.push_transformed(key, Delta::Added(self.transform(object)?));
        self.publish_length();
        Ok(())
    }

    fn update(&self, object: Object) -> Result<(), StoreError> {
        let key = object.key().clone();
        self.fifo.push_transformed(key, Delta::Updated(self.transform(object)?));
        self.publish_length();
        Ok(())
    }

    fn delete(&self, object: Object) -> Result<(), StoreError> {
        let key = object.key().clone();
        self.fifo.delete_key(key, DeltaObject::Object(self.transform(object)?));
        self.publish_length();
        Ok(())
    }

    fn replace(&self, items: Vec<Object>, resource_version: &str) -> Result<(), StoreError> {
        self.fifo.replace_transformed(items, Some(resource_version))?;
        self.publish_length();
        Ok(())
    }

    fn resync(&self) -> Result<(), StoreError> {
        self.fifo.resync();
        self.publish_length();
        Ok(())
    }

    fn should_resync(&self) -> bool {
        self.processor.should_resync(Instant::now())
    }

    fn copied_pointers(&self) -> Option<SharedPointers> {
        Some(self.processor.copied.clone())
    }

    fn intern(&self, object: Object) -> Object {
        self.compactor.intern(object)
    }

    fn source_changed(&self, generation: SourceGeneration) {
        self.fifo.source_changed(generation);
    }

    fn transform(&self, object: Object) -> Result<Object, StoreError> {
        Ok(self.transform(object)?)
    }

    fn newest(&self, key: &ObjectKey) -> Option<Object> {
        self.fifo.newest(key)
    }

    fn keys(&self) -> Vec<ObjectKey> {
        self.fifo.queued_and_known_keys()
    }

    fn update_resource_version(&self, resource_version: &str) {
        self.fifo.mark(resource_version);
    }
}

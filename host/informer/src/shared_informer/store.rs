//! What the reflector of an informer writes into: the delta queue, and a word to the listeners.

use std::sync::Arc;

use tokio::time::Instant;

use super::held::Held;
use crate::delta_fifo::{self, DeltaFifo};
use crate::indexer::Compactor;
use crate::informer_metrics::Publisher;
use crate::names::ObjectKey;
use crate::object::Object;
use crate::processor::Processor;
use crate::reflector::{ReflectorStore, SourceGeneration, StoreError};

pub(super) struct InformerStore {
    pub(super) fifo: Arc<DeltaFifo>,
    pub(super) processor: Arc<Processor>,
    pub(super) held: Arc<Held>,
    pub(super) publisher: Option<Publisher>,
    /// Compresses what a list brings.
    pub(super) compactor: Arc<Compactor>,
}

// === impl InformerStore ===

impl InformerStore {
    /// Publishes how much is queued, and passes on how that went.
    fn queued(&self, result: Result<(), delta_fifo::Error>) -> Result<(), StoreError> {
        if let Some(publisher) = &self.publisher {
            publisher.queued(&self.fifo);
        }
        Ok(result?)
    }
}

impl ReflectorStore for InformerStore {
    fn add(&self, object: Object) -> Result<(), StoreError> {
        self.queued(self.fifo.add(object))
    }

    fn update(&self, object: Object) -> Result<(), StoreError> {
        self.queued(self.fifo.update(object))
    }

    fn delete(&self, object: Object) -> Result<(), StoreError> {
        self.queued(self.fifo.delete(object))
    }

    fn replace(&self, items: Vec<Object>, resource_version: &str) -> Result<(), StoreError> {
        self.queued(self.fifo.replace_transformed(items))?;
        self.fifo.mark_list(resource_version);
        self.held.listed(self.fifo.len());
        if self.fifo.has_synced() {
            // An empty first list is processed as soon as it is queued.
            self.processor.informer_has_synced();
        }
        Ok(())
    }

    fn resync(&self) -> Result<(), StoreError> {
        self.fifo.resync();
        self.queued(Ok(()))
    }

    fn should_resync(&self) -> bool {
        self.processor.should_resync(Instant::now())
    }

    fn intern(&self, object: Object) -> Object {
        self.compactor.intern(object)
    }

    fn source_changed(&self, generation: SourceGeneration) {
        self.held.source_changed(generation.get());
    }

    fn transform(&self, object: Object) -> Result<Object, StoreError> {
        Ok(self.fifo.transform(object)?)
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

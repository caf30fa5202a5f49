//! Private parts of the crate for tests of other crates: queue, cache and listeners without a reflector, and
//! compression.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;

use crate::delta_fifo::{Config, DeltaFifo, Error, Processed};
use crate::indexer::{Indexer, IndexerWriter};
use crate::listener::{Listener, ListenerConfig};
use crate::object::{Dictionary, Object};
use crate::processor::{DeltaHandler, Processor};

/// A queue, a cache and listeners; each change is processed at once. Clones share them.
#[derive(Clone)]
pub struct Distribution {
    fifo: Arc<DeltaFifo>,
    processor: Arc<Processor>,
    handler: Arc<Mutex<DeltaHandler>>,
}

/// The dictionary that compresses bodies.
#[derive(Clone)]
pub struct Compression(Arc<Dictionary>);

// === impl Distribution ===

impl Default for Distribution {
    fn default() -> Self {
        Self::new()
    }
}

impl Distribution {
    /// Makes them without objects.
    pub fn new() -> Self {
        let writer = IndexerWriter::new();
        let known_objects = Some(Arc::new(writer.indexer().clone()) as _);
        let fifo = Arc::new(DeltaFifo::new(Config { known_objects, ..Config::default() }));
        let processor = Arc::new(Processor::new(writer, fifo.clone(), Duration::ZERO));
        let handler = Arc::new(Mutex::new(DeltaHandler::new(processor.clone())));
        Self { fifo, processor, handler }
    }

    /// Adds or changes an object.
    ///
    /// # Errors
    ///
    /// The errors of the queue.
    pub fn put(&self, object: Object) -> Result<(), Error> {
        self.fifo.update(object)?;
        self.process();
        Ok(())
    }

    /// Deletes an object.
    ///
    /// # Errors
    ///
    /// The errors of the queue.
    pub fn delete(&self, object: Object) -> Result<(), Error> {
        self.fifo.delete(object)?;
        self.process();
        Ok(())
    }

    /// Adds a listener; none after [`stop`](Self::stop).
    pub fn listen(&self, config: ListenerConfig) -> Option<Listener> {
        self.processor.add_listener(config)
    }

    /// Returns the read half of the cache.
    pub fn indexer(&self) -> Indexer {
        self.processor.block_deltas(Indexer::clone)
    }

    /// Ends all listeners.
    pub fn stop(&self) {
        self.processor.stop();
    }

    fn process(&self) {
        let pop = || {
            self.fifo.try_pop(|_, deltas, is_in_initial_list| {
                self.handler.lock().handle(deltas, is_in_initial_list);
                Processed::Done
            })
        };
        while pop() == Ok(true) {}
    }
}

// === impl Compression ===

impl Compression {
    /// Trains a dictionary on objects; none if they are too few or too small.
    pub fn learn(objects: &[Object]) -> Option<Self> {
        let texts: Vec<_> = objects.iter().map(Object::json).collect();
        Dictionary::train(&texts).map(|dictionary| Self(Arc::new(dictionary)))
    }

    /// Compresses the object's body in place, and returns whether it became smaller.
    pub fn compress(&self, object: &Object) -> bool {
        object.compress(&self.0).is_some()
    }
}

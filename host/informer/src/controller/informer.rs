//! An informer for one handler, without a backlog between queue and handler: client-go's plain informer.

use std::sync::Arc;

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::{Controller, ProcessError};
use crate::delta_fifo::{Config, Delta, DeltaFifo, DeltaObject, Deltas, Processed, Transformer, Watermark};
use crate::indexer::{Indexer, IndexerWriter};
use crate::list_watch::ListWatch;
use crate::names::ObjectKey;
use crate::object::Object;
use crate::reflector;
use crate::toolkit::cache::EventHandler;

/// The store that [`process_deltas`] keeps objects in.
pub trait Store {
    /// Stores an object under a key; returns the object that it replaced.
    ///
    /// # Errors
    ///
    /// When the object cannot be stored.
    fn put(&mut self, key: &ObjectKey, object: Object) -> Result<Option<Object>, ProcessError>;

    /// Removes the object of that key and returns it. `last_state` is its final state, unless the delete
    /// event was missed.
    ///
    /// # Errors
    ///
    /// When the object cannot be removed.
    fn delete(
        &mut self,
        key: &ObjectKey,
        last_state: Option<&Object>,
    ) -> Result<Option<Object>, ProcessError>;
}

/// A cache and one handler, which is called while the queue is locked, as in client-go's plain informer. A
/// slow handler delays the watch; if the handler panics, [`Informer::run`] panics.
///
/// Meant for small programs; other programs should use [`SharedInformer`](crate::SharedInformer).
pub struct Informer<H> {
    controller: Controller,
    fifo: Arc<DeltaFifo>,
    writer: IndexerWriter,
    handler: H,
}

/// Applies the deltas of one object, oldest first: each to the store first, then to the handler. The store
/// decides whether a change is an add or an update.
///
/// # Errors
///
/// When the store fails. The remaining deltas are dropped.
pub fn process_deltas<S, H>(
    store: &mut S,
    handler: &mut H,
    key: &ObjectKey,
    deltas: &Deltas,
    is_in_initial_list: bool,
) -> Result<(), ProcessError>
where
    S: Store + ?Sized,
    H: EventHandler + ?Sized,
{
    for delta in deltas.as_slice() {
        match delta {
            Delta::Added(new) | Delta::Updated(new) | Delta::Replaced(new) | Delta::Sync(new) => {
                match store.put(key, new.clone())? {
                    Some(old) => handler.on_update(&old, new),
                    None => handler.on_add(new, is_in_initial_list),
                }
            }
            Delta::Deleted(deleted) => {
                let last_state = match deleted {
                    DeltaObject::Object(object) => Some(object),
                    DeltaObject::Tombstone(_) => None,
                };
                let old = store.delete(key, last_state)?;
                if let Some(object) = deleted.last_known().or(old.as_ref()) {
                    handler.on_delete(object, deleted.is_tombstone());
                }
            }
        }
    }
    Ok(())
}

impl Store for IndexerWriter {
    fn put(&mut self, _key: &ObjectKey, object: Object) -> Result<Option<Object>, ProcessError> {
        Ok(self.put(object))
    }

    fn delete(
        &mut self,
        key: &ObjectKey,
        last_state: Option<&Object>,
    ) -> Result<Option<Object>, ProcessError> {
        Ok(self.delete(key, last_state))
    }
}

// === impl Informer ===

impl<H: EventHandler> Informer<H> {
    /// Returns an informer that does nothing until it is run.
    #[must_use]
    pub fn new(
        list_watch: Arc<dyn ListWatch>,
        config: reflector::Config,
        transformer: Option<Transformer>,
        handler: H,
    ) -> Self {
        let writer = IndexerWriter::new();
        let known_objects = Some(Arc::new(writer.indexer().clone()) as _);
        let fifo = Arc::new(DeltaFifo::new(Config { known_objects, transformer, ..Config::default() }));
        let controller = Controller::new(list_watch, fifo.clone(), config);
        Self { controller, fifo, writer, handler }
    }

    /// Returns the read half of the cache.
    #[must_use]
    pub fn indexer(&self) -> &Indexer {
        self.writer.indexer()
    }

    /// Returns how far the handler has come, as it is and as it changes: [`Watermark::has_synced`] once it
    /// has handled the whole first list.
    #[must_use]
    pub fn watermark(&self) -> watch::Receiver<Watermark> {
        self.fifo.watermark()
    }

    /// Runs the informer until the token is cancelled. It runs once.
    ///
    /// # Panics
    ///
    /// When the handler panics.
    pub async fn run(self, token: &CancellationToken) {
        let Self { controller, fifo: _, mut writer, mut handler } = self;
        let process = |key: &ObjectKey, deltas: &Deltas, is_in_initial_list: bool| {
            process_deltas(&mut writer, &mut handler, key, deltas, is_in_initial_list)?;
            Ok(Processed::Done)
        };
        controller.run(token, process).await;
    }
}

#[cfg(test)]
mod tests;

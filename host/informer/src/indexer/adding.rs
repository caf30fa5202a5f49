//! Adding an index without holding up the worker that does it.

use super::index::{IndexSource, Values};
use super::{BUILD_CHUNK, Error, IndexId, Indexer};

/// After this many bytes of text, which take well below a millisecond, the others get their turn.
const SLICE_BYTES: usize = 256 << 10;

/// An index that has no name yet. Dropping it takes the user away that it counts as.
struct Unnamed<'i> {
    indexer: &'i Indexer,
    id: Option<IndexId>,
}

// === impl Indexer ===

impl Indexer {
    /// Adds an index as [`Indexer::add_index`] does, but yields to other tasks again and again. The objects
    /// that are there are indexed when this returns; dropped before, it adds nothing.
    ///
    /// # Errors
    ///
    /// When there is an index of that name already.
    pub async fn add_index_in_slices(
        &self,
        name: impl Into<String>,
        source: IndexSource,
    ) -> Result<(), Error> {
        let name = name.into();
        if self.has_index(&name) {
            return Err(Error::IndexExists(name));
        }
        let id = self.state.write().use_index(source.clone());
        let mut unnamed = Unnamed { indexer: self, id: Some(id) };
        self.build_in_slices(id, &source).await;
        let mut state = self.state.write();
        if state.names.contains_key(&name) {
            drop(state);
            return Err(Error::IndexExists(name));
        }
        state.names.insert(name, id);
        unnamed.id = None;
        Ok(())
    }

    async fn build_in_slices(&self, id: IndexId, source: &IndexSource) {
        let view = self.view();
        let mut entries = view.entries().peekable();
        while entries.peek().is_some() {
            let (mut chunk, mut bytes) = (Vec::new(), 0);
            while chunk.len() < BUILD_CHUNK && bytes < SLICE_BYTES {
                let Some((key, object)) = entries.next() else { break };
                chunk.push((key, object, Values::of(source, object)));
                // A label stands beside the text.
                bytes += if matches!(source, IndexSource::Label(_)) { 0 } else { object.json_length() };
            }
            {
                let mut state = self.state.write();
                for (key, object, filing) in chunk {
                    state.file(id, object, key, filing);
                }
            }
            tokio::task::yield_now().await;
        }
    }
}

// === impl Unnamed ===

impl Drop for Unnamed<'_> {
    fn drop(&mut self) {
        let Some(id) = self.id else { return };
        let freed = self.indexer.state.write().free_index(id);
        // A large index takes a while to free; nobody has to wait for it.
        drop(freed);
    }
}

//! Adds an index in slices, so that the task that adds it yields to others.

use super::index::{IndexSource, Values};
use super::{BUILD_CHUNK, Error, IndexId, Indexer};

/// A slice ends after this many bytes of text, which take well below a millisecond.
const SLICE_BYTES: usize = 256 << 10;

/// An index that has no name yet. Dropping it releases the index.
struct Unnamed<'i> {
    indexer: &'i Indexer,
    id: Option<IndexId>,
}

// === impl Indexer ===

impl Indexer {
    /// Adds an index like [`Indexer::add_index`], but yields to other tasks after each slice.
    ///
    /// Dropping the future before it returns adds nothing.
    ///
    /// # Errors
    ///
    /// An index of that name exists already.
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
                // Labels are stored beside the text.
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
        let freed = self.indexer.state.write().release_index(id);
        // A large index takes a while to free, so it is freed after the lock.
        drop(freed);
    }
}

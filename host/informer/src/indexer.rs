//! The cache of one resource: every object once, sorted by key, and the indices over them.
//!
//! Reading and writing are different types: [`Indexer`] has no method that changes an object, [`IndexerWriter`] is the
//! informer's alone. Readers get references to shared objects and hold the lock only while they collect them: selectors are
//! matched outside. What an index filed an object under is kept in the index and never computed anew from the object.
//!
//! Order: everything that answers several objects answers them sorted by key.

mod adding;
mod by_index;
mod compactor;
mod compression_queue;
mod index;
mod memory;
mod objects;
mod order;
mod page;
mod postings;
mod slots;
mod state;
mod writer;

use std::collections::BTreeMap;
use std::sync::Arc;

use oarlock_label_selector::LabelSelector;
use parking_lot::RwLock;

use crate::delta_fifo::KnownObjects;
use crate::names::ObjectKey;
use crate::namespaces::Namespaces;
use crate::object::Object;

pub(crate) use self::compactor::Compactor;
pub use self::index::{IndexError, IndexFunction, IndexSource, IndexStatus, Limits, ValuesCursor};
pub use self::memory::Memory;
pub use self::objects::Objects;
pub use self::page::{Page, PageRequest};
pub(crate) use self::state::View;
pub use self::writer::IndexerWriter;

use self::index::Values;
use self::state::CacheState;

/// The index that is always there: an object's namespace. It costs nothing, since objects are sorted by it.
pub const NAMESPACE_INDEX: &str = "namespace";

/// How many objects are indexed between two breaths of the writer, when an index is added late.
const BUILD_CHUNK: usize = 512;

/// How many objects, or values, are looked at under one hold of the lock at most. More are read from a view.
const CHUNK: usize = 512;

/// The read half of a cache. Cloning it gives another handle on the same cache.
///
/// Reads see a state that was true at one moment; two reads may see two states.
#[derive(Clone)]
pub struct Indexer {
    state: Arc<RwLock<CacheState>>,
}

/// Why an index cannot be read or added.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// There is no index of that name.
    #[error("no index named {0:?}")]
    UnknownIndex(String),
    /// There is an index of that name already.
    #[error("an index named {0:?} exists already")]
    IndexExists(String),
    /// The informer that fills the cache has stopped, and takes no index any more.
    #[error("index {0:?} was not added because the informer has stopped already")]
    InformerStopped(String),
    /// The index cannot say what it would file the object under.
    #[error(transparent)]
    Index(#[from] IndexError),
    /// The index left objects out because of its [`Limits`], so that an answer would lack some of them.
    #[error(
        "index {index:?} is incomplete: {left_out} objects of namespace {namespace:?} are beyond its limits"
    )]
    Incomplete {
        /// The index.
        index: String,
        /// One of the namespaces that were asked for.
        namespace: String,
        /// How many of its objects are left out.
        left_out: usize,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct IndexId(u64);

// === impl Indexer ===

impl Indexer {
    /// Returns the object of that key.
    #[must_use]
    pub fn get(&self, key: &ObjectKey) -> Option<Object> {
        self.state.read().get(key).cloned()
    }

    /// Returns the objects of a namespace, or of all, whose labels match.
    #[must_use]
    pub fn list(&self, namespace: Option<&str>, selector: &LabelSelector) -> Vec<Object> {
        let namespaces = namespace.map_or(Namespaces::All, Namespaces::one);
        let mut objects = self.snapshot(&namespaces);
        if !selector.is_everything() {
            objects.retain(|object| object.is_selected_by(selector));
        }
        objects
    }

    /// Returns a page of the objects, see [`PageRequest`].
    #[must_use]
    pub fn list_page(&self, request: &PageRequest) -> Page {
        page::fill(request, usize::MAX, |after, limit| self.some(request, after, limit))
    }

    /// Returns a page for which at most so many objects were looked at: it may be short, or empty, and there
    /// may be more.
    #[must_use]
    pub fn list_step(&self, request: &PageRequest, max_examined: usize) -> Page {
        page::fill(request, max_examined, |after, limit| self.some(request, after, limit))
    }

    fn some(
        &self,
        request: &PageRequest,
        after: Option<&ObjectKey>,
        limit: usize,
    ) -> Vec<(ObjectKey, Object)> {
        let state = self.state.read();
        let slots = state.order().within(state.slots(), &request.namespaces, after).take(limit);
        slots.filter_map(|slot| state.entry(slot)).collect()
    }

    /// Returns the objects that an index files under any of the values that it would file this object under, each once.
    pub fn index(&self, name: &str, object: &Object) -> Result<Vec<Object>, Error> {
        if name == NAMESPACE_INDEX {
            return self.by_index(name, object.key().namespace());
        }
        let source = self.state.read().index(name)?.source().clone();
        let values = Values::of(&source, object)?;
        let state = self.state.read();
        let index = state.complete_index(name, &Namespaces::All)?;
        let found = values.iter().filter_map(|value| index.postings(value));
        let entries: BTreeMap<_, _> =
            found.flat_map(|postings| postings.iter()).filter_map(|slot| state.entry(slot)).collect();
        Ok(entries.into_values().collect())
    }

    /// Returns the keys of all objects.
    #[must_use]
    pub fn keys(&self) -> Vec<ObjectKey> {
        self.view().keys_within(&Namespaces::All).cloned().collect()
    }

    /// Returns all objects of these namespaces as they are at one moment.
    #[must_use]
    pub fn snapshot(&self, namespaces: &Namespaces) -> Vec<Object> {
        let state = self.state.read();
        let n_objects = state.order().count(state.slots(), namespaces);
        let mut objects = Vec::with_capacity(n_objects);
        if n_objects <= CHUNK {
            let slots = state.order().within(state.slots(), namespaces, None);
            objects.extend(slots.filter_map(|slot| state.slots().get(slot)).cloned());
            return objects;
        }
        let view = state.view();
        drop(state);
        objects.extend(view.objects(namespaces).cloned());
        objects
    }

    /// Returns all that is there at this moment, by reference; the writer goes on.
    pub(crate) fn view(&self) -> View {
        self.state.read().view()
    }

    /// Returns how many objects there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.state.read().order().len()
    }

    /// Whether there are no objects.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the length of all objects' JSON text in bytes, in whatever form it is kept.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.state.read().memory.text
    }

    /// Returns how much memory the cache takes.
    #[must_use]
    pub fn memory(&self) -> Memory {
        self.state.read().memory()
    }

    /// Returns the resourceVersion of the last change. It is set, not compared: it may be lower than the one before.
    #[must_use]
    pub fn resource_version(&self) -> Box<str> {
        self.state.read().resource_version.text().into()
    }

    /// Adds an index. The objects that are there are indexed when this returns; meanwhile the cache goes on being written.
    ///
    /// Two names with equal sources share one index.
    pub fn add_index(&self, name: impl Into<String>, source: IndexSource) -> Result<(), Error> {
        self.add_indices([(name.into(), source)])
    }

    /// Adds several indices, or none if one of the names is taken.
    pub fn add_indices(&self, indices: impl IntoIterator<Item = (String, IndexSource)>) -> Result<(), Error> {
        let indices: BTreeMap<_, _> = indices.into_iter().collect();
        let mut users = Vec::with_capacity(indices.len());
        {
            let mut state = self.state.write();
            if let Some(taken) =
                indices.keys().find(|name| *name == NAMESPACE_INDEX || state.names.contains_key(*name))
            {
                return Err(Error::IndexExists(taken.clone()));
            }
            for (name, source) in indices {
                let id = state.use_index(source);
                users.push((name, id));
            }
        }
        for (_, id) in &users {
            self.build(*id);
        }
        let mut state = self.state.write();
        for (position, (name, id)) in users.iter().enumerate() {
            if state.names.contains_key(name) {
                // Somebody else took the name while the index was built.
                let taken = name.clone();
                for (name, _) in &users[..position] {
                    state.names.remove(name);
                }
                let freed: Vec<_> = users.iter().filter_map(|(_, id)| state.free_index(*id)).collect();
                drop(state);
                drop(freed);
                return Err(Error::IndexExists(taken));
            }
            state.names.insert(name.clone(), *id);
        }
        Ok(())
    }

    /// Removes an index by name, and frees it if no other name shares it. Answers whether there was one.
    pub fn remove_index(&self, name: &str) -> bool {
        let mut state = self.state.write();
        let Some(id) = state.names.remove(name) else { return false };
        let freed = state.free_index(id);
        drop(state);
        // A large index takes a while to free; nobody has to wait for it.
        drop(freed);
        true
    }

    /// Returns the names of the indices, sorted, without the namespace index.
    #[must_use]
    pub fn index_names(&self) -> Vec<String> {
        self.state.read().names.keys().cloned().collect()
    }

    /// Whether there is an index of that name.
    #[must_use]
    pub fn has_index(&self, name: &str) -> bool {
        name == NAMESPACE_INDEX || self.state.read().index(name).is_ok()
    }

    /// Returns which objects an index could not file, and why: the first thousand of them.
    pub fn index_failures(&self, name: &str) -> Result<BTreeMap<ObjectKey, IndexError>, Error> {
        if name == NAMESPACE_INDEX {
            return Ok(BTreeMap::new());
        }
        Ok(self.state.read().index(name)?.failures().clone())
    }

    /// Returns a look at an index.
    pub fn index_status(&self, name: &str) -> Result<IndexStatus, Error> {
        if name == NAMESPACE_INDEX {
            return Ok(IndexStatus::default());
        }
        Ok(self.state.read().index(name)?.status())
    }

    /// Files the objects that were there before the index, a chunk at a time.
    fn build(&self, id: IndexId) {
        let view = self.view();
        let mut entries = view.entries();
        loop {
            let chunk: Vec<_> = entries.by_ref().take(BUILD_CHUNK).collect();
            let source = self.state.read().index_by_id(id).map(|index| index.source().clone());
            let Some(source) = source.filter(|_| !chunk.is_empty()) else { return };
            let filings: Vec<_> = chunk.iter().map(|(_, object)| Values::of(&source, object)).collect();
            let mut state = self.state.write();
            for ((key, object), filing) in chunk.into_iter().zip(filings) {
                state.file(id, object, key, filing);
            }
        }
    }
}

impl KnownObjects for Indexer {
    fn known(&self, key: &ObjectKey) -> Option<Object> {
        self.get(key)
    }

    fn known_keys(&self) -> Vec<ObjectKey> {
        self.keys()
    }
}

#[cfg(test)]
mod tests;

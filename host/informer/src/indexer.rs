//! The cache of one resource: each object once, sorted by key, and indices over the objects.
//!
//! [`Indexer`] reads the cache and cannot change an object. [`IndexerWriter`] writes it, and only the
//! informer has one. Readers get references to shared objects. They hold the lock while they collect the
//! objects, and match selectors after they released it. An index stores the values under which it filed each
//! object, so that an update or delete does not compute them again.
//!
//! All methods that return several objects return them sorted by key.

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
use std::sync::atomic::Ordering;

use oarlock_label_selector::LabelSelector;
use parking_lot::RwLock;

use crate::delta_fifo::KnownObjects;
use crate::names::ObjectKey;
use crate::namespaces::Namespaces;
use crate::object::Object;

pub(crate) use self::compactor::Compactor;
pub use self::index::{IndexError, IndexFunction, IndexLimits, IndexSource, IndexStatus, ValuesCursor};
pub use self::memory::Memory;
pub use self::objects::Objects;
pub use self::page::{Page, PageRequest};
pub(crate) use self::state::View;
pub use self::writer::IndexerWriter;

use self::index::Values;
use self::state::CacheState;

/// The name of the index by namespace, which always exists. It takes no memory: objects are sorted by
/// namespace.
pub const NAMESPACE_INDEX: &str = "namespace";

/// How many objects a new index files while it holds the lock once.
const BUILD_CHUNK: usize = 512;

/// How many objects or values a reader collects while it holds the lock once. More are read from a view.
const CHUNK: usize = 512;

/// The read half of a cache. Clones read the same cache.
///
/// Each call sees the cache at one moment. Two calls may see different states.
#[derive(Clone)]
pub struct Indexer {
    state: Arc<RwLock<CacheState>>,
}

/// Why an index cannot be read or added.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The cache has no index of that name.
    #[error("no index named {0:?}")]
    UnknownIndex(String),
    /// The cache has an index of that name already.
    #[error("an index named {0:?} exists already")]
    IndexExists(String),
    /// The informer that fills the cache has stopped.
    #[error("index {0:?} was not added because the informer has stopped already")]
    InformerStopped(String),
    /// The index cannot compute the values of the object.
    #[error(transparent)]
    Index(#[from] IndexError),
    /// The index left objects out because of its [`IndexLimits`], so that a result could lack some of them.
    #[error("index {index:?} is incomplete: {left_out} objects of namespace {namespace:?} exceed its limits")]
    Incomplete {
        /// The name of the index.
        index: String,
        /// One of the namespaces that the caller asked for.
        namespace: String,
        /// How many objects of the namespace are left out.
        left_out: usize,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct IndexId(u64);

// === impl Indexer ===

impl Indexer {
    /// Returns the object with this key.
    #[must_use]
    pub fn get(&self, key: &ObjectKey) -> Option<Object> {
        self.state.read().get(key).cloned()
    }

    /// Returns the object of that name, as [`get`](Self::get) does, without a key. The namespace of a
    /// cluster-scoped object is empty.
    #[must_use]
    pub fn get_named(&self, namespace: &str, name: &str) -> Option<Object> {
        self.state.read().get_named(namespace, name).cloned()
    }

    /// Returns the object with this key, and its slot: a small number that it keeps while it is cached.
    pub(crate) fn get_with_slot(&self, key: &ObjectKey) -> Option<(u32, Object)> {
        let state = self.state.read();
        let slot = state.find(key)?;
        Some((slot, state.slots().get(slot)?.clone()))
    }

    /// Records how many bytes the values take that are kept beside the objects.
    pub(crate) fn record_kept_values(&self, n_bytes: usize) {
        self.state.read().kept_values.store(n_bytes, Ordering::Relaxed);
    }

    /// Returns the objects whose labels match, of one namespace or of all.
    #[must_use]
    pub fn list(&self, namespace: Option<&str>, selector: &LabelSelector) -> Vec<Object> {
        let namespaces = namespace.map_or(Namespaces::All, Namespaces::one);
        let mut objects = self.snapshot(&namespaces);
        if !selector.is_everything() {
            objects.retain(|object| object.is_selected_by(selector));
        }
        objects
    }

    /// Returns a page of the objects; see [`PageRequest`].
    #[must_use]
    pub fn list_page(&self, request: &PageRequest) -> Page {
        page::fill(request, usize::MAX, |after, limit| self.entries_after(request, after, limit))
    }

    /// Returns a page, but examines at most `max_examined` objects for it.
    ///
    /// So the page may have fewer objects than the limit, or none, although more match.
    #[must_use]
    pub fn list_step(&self, request: &PageRequest, max_examined: usize) -> Page {
        page::fill(request, max_examined, |after, limit| self.entries_after(request, after, limit))
    }

    fn entries_after(
        &self,
        request: &PageRequest,
        after: Option<&ObjectKey>,
        limit: usize,
    ) -> Vec<(ObjectKey, Object)> {
        let state = self.state.read();
        let slots = state.order().within(state.slots(), &request.namespaces, after).take(limit);
        slots.filter_map(|slot| state.entry(slot)).collect()
    }

    /// Returns the objects that share a value of this index with `object`, each once. `object` need not be
    /// cached.
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

    /// Returns all objects of these namespaces at one moment.
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

    /// Returns a view of all objects at this moment. It holds no lock, and later writes do not change it.
    pub(crate) fn view(&self) -> View {
        self.state.read().view()
    }

    /// Returns the number of objects.
    #[must_use]
    pub fn len(&self) -> usize {
        self.state.read().order().len()
    }

    /// Whether the cache has no objects.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the length of all objects' JSON texts in bytes, as if none were compressed.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.state.read().memory.text
    }

    /// Returns how much memory the cache takes.
    #[must_use]
    pub fn memory(&self) -> Memory {
        self.state.read().memory()
    }

    /// Returns the resourceVersion of the last change. It may be lower than an earlier one: versions are not
    /// compared.
    #[must_use]
    pub fn resource_version(&self) -> Box<str> {
        self.state.read().resource_version.text().into()
    }

    /// Adds an index and files all cached objects in it before it returns. The cache can be written
    /// meanwhile.
    ///
    /// Two names with equal sources share one index.
    ///
    /// # Errors
    ///
    /// An index of that name exists already.
    pub fn add_index(&self, name: impl Into<String>, source: IndexSource) -> Result<(), Error> {
        self.add_indices([(name.into(), source)])
    }

    /// Adds several indices like [`Indexer::add_index`], or none of them.
    ///
    /// # Errors
    ///
    /// An index of one of the names exists already.
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
                // Another call added an index of this name while this one was built.
                let taken = name.clone();
                for (name, _) in &users[..position] {
                    state.names.remove(name);
                }
                let freed: Vec<_> = users.iter().filter_map(|(_, id)| state.release_index(*id)).collect();
                drop(state);
                drop(freed);
                return Err(Error::IndexExists(taken));
            }
            state.names.insert(name.clone(), *id);
        }
        Ok(())
    }

    /// Removes an index by name, and frees it if no other name shares it. Returns whether the index existed.
    pub fn remove_index(&self, name: &str) -> bool {
        let mut state = self.state.write();
        let Some(id) = state.names.remove(name) else { return false };
        let freed = state.release_index(id);
        drop(state);
        // A large index takes a while to free, so it is freed after the lock.
        drop(freed);
        true
    }

    /// Returns the names of the indices, sorted, without [`NAMESPACE_INDEX`].
    #[must_use]
    pub fn index_names(&self) -> Vec<String> {
        self.state.read().names.keys().cloned().collect()
    }

    /// Whether the cache has an index of that name.
    #[must_use]
    pub fn has_index(&self, name: &str) -> bool {
        name == NAMESPACE_INDEX || self.state.read().index(name).is_ok()
    }

    /// Returns the first thousand objects that an index could not file, with the reasons.
    pub fn index_failures(&self, name: &str) -> Result<BTreeMap<ObjectKey, IndexError>, Error> {
        if name == NAMESPACE_INDEX {
            return Ok(BTreeMap::new());
        }
        Ok(self.state.read().index(name)?.failures().clone())
    }

    /// Returns the current size of an index and how many objects it lacks.
    pub fn index_status(&self, name: &str) -> Result<IndexStatus, Error> {
        if name == NAMESPACE_INDEX {
            return Ok(IndexStatus::default());
        }
        Ok(self.state.read().index(name)?.status())
    }

    /// Files the objects that were cached before the index was added, a chunk at a time.
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

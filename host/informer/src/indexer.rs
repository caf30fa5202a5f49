//! The cache of one resource: every object once, sorted by key, and the indices over them.
//!
//! Reading and writing are different types: [`Indexer`] has no method that changes an object, [`IndexerWriter`] is the
//! informer's alone. Readers get references to shared objects and hold the lock only while they collect them: selectors are
//! matched outside. What an index filed an object under is kept in the index and never computed anew from the object.
//!
//! Order: everything that answers several objects answers them sorted by key.

mod index;
mod page;
mod writer;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use parking_lot::RwLock;

use crate::delta_fifo::KnownObjects;
use crate::names::ObjectKey;
use crate::namespaces::Namespaces;
use crate::object::Object;
use crate::selector::LabelSelector;

pub use self::index::{IndexError, IndexFunction, IndexSource};
pub use self::page::{Page, PageRequest};
pub use self::writer::IndexerWriter;

use self::index::{Index, Values};

/// The index that is always there: an object's namespace. It costs nothing, since objects are sorted by it.
pub const NAMESPACE_INDEX: &str = "namespace";

/// How many objects are indexed between two breaths of the writer, when an index is added late.
const BUILD_CHUNK: usize = 512;

/// The read half of a cache. Cloning it gives another handle on the same cache.
///
/// Reads see a state that was true at one moment; two reads may see two states.
#[derive(Clone)]
pub struct Indexer {
    state: Arc<RwLock<State>>,
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
}

#[derive(Default)]
struct State {
    objects: BTreeMap<ObjectKey, Object>,
    /// Several names may share an index.
    names: BTreeMap<String, IndexId>,
    indices: HashMap<IndexId, Index>,
    next_index: u64,
    resource_version: Box<str>,
    /// The length of all objects' texts.
    bytes: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct IndexId(u64);

// === impl Indexer ===

impl Indexer {
    /// Returns the object of that key.
    #[must_use]
    pub fn get(&self, key: &ObjectKey) -> Option<Object> {
        self.state.read().objects.get(key).cloned()
    }

    /// Returns the objects of a namespace, or of all, whose labels match.
    #[must_use]
    pub fn list(&self, namespace: Option<&str>, selector: &LabelSelector) -> Vec<Object> {
        let namespaces = namespace.map_or(Namespaces::All, Namespaces::one);
        let objects = self.snapshot(&namespaces);
        if selector.is_everything() {
            return objects;
        }
        objects.into_iter().filter(|object| selector.selects(object)).collect()
    }

    /// Returns a page of the objects, see [`PageRequest`].
    #[must_use]
    pub fn list_page(&self, request: &PageRequest) -> Page {
        page::fill(request, |after, limit| {
            page::chunk(after, &request.namespaces, limit, &self.state.read().objects)
        })
    }

    /// Returns the objects that an index filed under a value.
    pub fn by_index(&self, name: &str, value: &str) -> Result<Vec<Object>, Error> {
        let state = self.state.read();
        if name == NAMESPACE_INDEX {
            drop(state);
            return Ok(self.snapshot(&Namespaces::one(value)));
        }
        let keys = state.index(name)?.keys(value);
        Ok(keys.into_iter().flatten().filter_map(|key| state.objects.get(key)).cloned().collect())
    }

    /// Returns a page of the objects that an index filed under a value.
    ///
    /// An index that is removed between two pages answers [`Error::UnknownIndex`].
    pub fn by_index_page(&self, name: &str, value: &str, request: &PageRequest) -> Result<Page, Error> {
        if name == NAMESPACE_INDEX {
            if !request.namespaces.contains(value) {
                return Ok(Page::default());
            }
            return Ok(self.list_page(&PageRequest { namespaces: Namespaces::one(value), ..request.clone() }));
        }
        self.state.read().index(name)?;
        let mut is_gone = false;
        let page = page::fill(request, |after, limit| {
            let state = self.state.read();
            let Ok(index) = state.index(name) else {
                is_gone = true;
                return Vec::new();
            };
            let Some(keys) = index.keys(value) else { return Vec::new() };
            let keys = page::key_chunk(after, &request.namespaces, limit, keys);
            keys.into_iter().filter_map(|key| state.objects.get(key).cloned()).collect()
        });
        if is_gone { Err(Error::UnknownIndex(name.to_owned())) } else { Ok(page) }
    }

    /// Returns the objects that an index files under any of the values that it would file this object under, each once.
    pub fn index(&self, name: &str, object: &Object) -> Result<Vec<Object>, Error> {
        if name == NAMESPACE_INDEX {
            return self.by_index(name, object.key().namespace());
        }
        let source = self.state.read().index(name)?.source().clone();
        let values = Values::of(&source, object)?;
        let state = self.state.read();
        let index = state.index(name)?;
        let keys: std::collections::BTreeSet<_> =
            values.iter().filter_map(|value| index.keys(value)).flatten().collect();
        Ok(keys.into_iter().filter_map(|key| state.objects.get(key)).cloned().collect())
    }

    /// Returns the keys of the objects that an index filed under a value.
    pub fn index_keys(&self, name: &str, value: &str) -> Result<Vec<ObjectKey>, Error> {
        let state = self.state.read();
        if name == NAMESPACE_INDEX {
            return Ok(page::chunk_keys_of(&Namespaces::one(value), &state.objects));
        }
        Ok(state.index(name)?.keys(value).into_iter().flatten().cloned().collect())
    }

    /// Returns the values under which an index has objects in these namespaces, sorted; nothing for an unknown index.
    #[must_use]
    pub fn index_values(&self, name: &str, namespaces: &Namespaces) -> Vec<String> {
        let state = self.state.read();
        if name == NAMESPACE_INDEX {
            return page::namespaces_of(&state.objects)
                .into_iter()
                .filter(|it| namespaces.contains(it))
                .collect();
        }
        state.index(name).map(|index| index.values(namespaces)).unwrap_or_default()
    }

    /// Returns the keys of all objects.
    #[must_use]
    pub fn keys(&self) -> Vec<ObjectKey> {
        self.state.read().objects.keys().cloned().collect()
    }

    /// Returns all objects of these namespaces as they are at one moment.
    #[must_use]
    pub fn snapshot(&self, namespaces: &Namespaces) -> Vec<Object> {
        page::chunk(None, namespaces, usize::MAX, &self.state.read().objects)
    }

    /// Returns how many objects there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.state.read().objects.len()
    }

    /// Whether there are no objects.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the length of all objects' JSON text in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.state.read().bytes
    }

    /// Returns the resourceVersion of the last change. It is set, not compared: it may be lower than the one before.
    #[must_use]
    pub fn resource_version(&self) -> Box<str> {
        self.state.read().resource_version.clone()
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

    /// Returns which objects an index could not file, and why.
    pub fn index_failures(&self, name: &str) -> Result<BTreeMap<ObjectKey, IndexError>, Error> {
        if name == NAMESPACE_INDEX {
            return Ok(BTreeMap::new());
        }
        Ok(self.state.read().index(name)?.failures().clone())
    }

    /// Files the objects that were there before the index, a chunk at a time.
    fn build(&self, id: IndexId) {
        let mut after: Option<ObjectKey> = None;
        loop {
            let (source, chunk) = {
                let state = self.state.read();
                let Some(index) = state.indices.get(&id) else { return };
                let chunk = page::chunk(after.as_ref(), &Namespaces::All, BUILD_CHUNK, &state.objects);
                (index.source().clone(), chunk)
            };
            let Some(last) = chunk.last() else { return };
            after = Some(last.key().clone());
            let values: Vec<_> = chunk.iter().map(|object| Values::of(&source, object)).collect();
            let mut state = self.state.write();
            for (object, values) in chunk.iter().zip(values) {
                // What changed meanwhile has been filed by the writer.
                if state.objects.get(object.key()).is_some_and(|now| now.is_same(object))
                    && let Some(index) = state.indices.get_mut(&id)
                {
                    index.put(object.key(), values);
                }
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

// === impl State ===

impl State {
    fn index(&self, name: &str) -> Result<&Index, Error> {
        let id = self.names.get(name);
        id.and_then(|id| self.indices.get(id)).ok_or_else(|| Error::UnknownIndex(name.to_owned()))
    }

    /// Returns the index with this source, one user more.
    fn use_index(&mut self, source: IndexSource) -> IndexId {
        if let Some((id, index)) = self.indices.iter_mut().find(|(_, index)| *index.source() == source) {
            index.n_users += 1;
            return *id;
        }
        let id = IndexId(self.next_index);
        self.next_index += 1;
        self.indices.insert(id, Index::new(source));
        id
    }

    /// Takes a user from an index; returns it if that was the last one.
    fn free_index(&mut self, id: IndexId) -> Option<Index> {
        let index = self.indices.get_mut(&id)?;
        index.n_users -= 1;
        if index.n_users == 0 { self.indices.remove(&id) } else { None }
    }
}

#[cfg(test)]
mod tests;

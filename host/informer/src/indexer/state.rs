//! The state of a cache, which its lock guards, and views of it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use hashbrown::HashTable;

use super::compression_queue::CompressionQueue;
use super::index::{Filing, Index, IndexLimits, IndexSource, Values};
use super::order::Order;
use super::slots::{Slot, SlotTable, Slots};
use super::{Error, IndexId, Memory};
use crate::names::ObjectKey;
use crate::namespaces::Namespaces;
use crate::object::Object;
use crate::resource_version::Version;

/// A smaller key table is not shrunk.
const SMALL: usize = 64;

/// The objects of a cache, and all structures that find them.
#[derive(Default)]
pub(super) struct CacheState {
    slots: SlotTable,
    /// The slots, by the hash of their keys.
    table: HashTable<Slot>,
    /// The slots, sorted by their keys.
    order: Order,
    pub(super) compression_queue: CompressionQueue,
    /// The indices by name. Several names may share an index.
    pub(super) names: BTreeMap<String, IndexId>,
    pub(super) indices: Vec<(IndexId, Index)>,
    /// The sources of all indices.
    sources: Arc<[(IndexId, IndexSource)]>,
    next_index: u64,
    pub(super) limits: IndexLimits,
    pub(super) resource_version: Version,
    pub(super) memory: Memory,
    /// The bytes of the declared fields' values that are kept of the objects.
    pub(super) kept_values: AtomicUsize,
}

/// A view of the cache at one moment. Later writes do not change it.
pub(crate) struct View {
    slots: Slots,
    order: Order,
}

// === impl CacheState ===

impl CacheState {
    pub(super) fn with_keys() -> Self {
        Self { slots: SlotTable::default().with_keys(), ..Self::default() }
    }

    pub(super) fn slots(&self) -> &Slots {
        self.slots.slots()
    }

    pub(super) fn order(&self) -> &Order {
        &self.order
    }

    pub(super) fn find(&self, key: &ObjectKey) -> Option<Slot> {
        let slots = self.slots.slots();
        self.table.find(key.hash_value(), |slot| slots.key(*slot) == Some(key)).copied()
    }

    pub(super) fn get(&self, key: &ObjectKey) -> Option<&Object> {
        self.slots.slots().get(self.find(key)?)
    }

    /// Returns the object of that name.
    pub(super) fn get_named(&self, namespace: &str, name: &str) -> Option<&Object> {
        let slots = self.slots.slots();
        let is_it = |slot: &Slot| slots.key(*slot).is_some_and(|key| key.is(namespace, name));
        let slot = self.table.find(ObjectKey::hash_of(namespace, name), is_it)?;
        slots.get(*slot)
    }

    /// Returns a slot's object with its key.
    pub(super) fn entry(&self, slot: Slot) -> Option<(ObjectKey, Object)> {
        let slots = self.slots.slots();
        Some((slots.key(slot)?.clone(), slots.get(slot)?.clone()))
    }

    pub(super) fn view(&self) -> View {
        View { slots: self.slots.slots().clone(), order: self.order.clone() }
    }

    /// Stores an object, and returns the previous one. `found` is the slot of `key`, if the key is cached.
    /// Without a `key` the object has its own.
    pub(super) fn put(
        &mut self,
        key: Option<&ObjectKey>,
        found: Option<Slot>,
        object: Object,
        mut filings: Vec<(IndexId, Filing<'_>)>,
    ) -> Option<Object> {
        let compressed = object.compressed_length();
        self.memory.add(&object, compressed);
        let (slot, old) = match found {
            Some(slot) => {
                let old = self.slots.replace(slot, object);
                if let Some(old) = &old {
                    self.memory.remove(old, self.compression_queue.compressed_length(slot));
                }
                (slot, old)
            }
            None => {
                let hash_value = key.unwrap_or(object.key()).hash_value();
                let slot = self.slots.insert(key, object);
                let slots = self.slots.slots();
                let hash = |slot: &Slot| slots.key(*slot).map_or(0, ObjectKey::hash_value);
                self.table.insert_unique(hash_value, slot, hash);
                self.order.insert(slot, slots);
                (slot, None)
            }
        };
        self.compression_queue.record_write(slot, compressed);
        let slots = self.slots.slots();
        for (id, index) in &mut self.indices {
            let filing = match filings.iter().position(|(filed, _)| filed == id) {
                Some(position) => filings.swap_remove(position).1,
                // The index was added after the writer computed the filings.
                None => match slots.get(slot) {
                    Some(object) => Values::of(index.source(), object),
                    None => continue,
                },
            };
            index.put(slot, filing, slots);
        }
        old
    }

    pub(super) fn delete(&mut self, key: &ObjectKey) -> Option<Object> {
        let slots = self.slots.slots();
        let entry = self.table.find_entry(key.hash_value(), |slot| slots.key(*slot) == Some(key)).ok()?;
        let (slot, _) = entry.remove();
        self.order.remove(slot, slots);
        for (_, index) in &mut self.indices {
            index.remove(slot, slots);
        }
        let old = self.slots.remove(slot)?;
        self.memory.remove(&old, self.compression_queue.compressed_length(slot));
        self.compression_queue.record_removal(slot);
        self.shrink();
        Some(old)
    }

    /// Removes all objects, but keeps the indices. Returns the removed structures, so that the caller drops
    /// them after the lock.
    pub(super) fn clear(&mut self) -> impl Sized + use<> {
        let has_keys = self.slots.slots().has_keys();
        let slots = if has_keys { SlotTable::default().with_keys() } else { SlotTable::default() };
        let old = std::mem::replace(&mut self.slots, slots);
        self.compression_queue.clear();
        self.memory = Memory { dictionaries: self.memory.dictionaries, ..Memory::default() };
        let filed: Vec<_> = self.indices.iter_mut().map(|(_, index)| index.clear()).collect();
        (old, std::mem::take(&mut self.table), std::mem::take(&mut self.order), filed)
    }

    /// Frees memory after many deletes.
    fn shrink(&mut self) {
        if self.order.len() == 0 {
            drop(self.clear());
        } else if self.table.capacity() > SMALL && self.order.len() < self.table.capacity() / 8 {
            let slots = self.slots.slots();
            let hash = |slot: &Slot| slots.key(*slot).map_or(0, ObjectKey::hash_value);
            self.table.shrink_to(SMALL.max(self.order.len() * 2), hash);
        }
    }

    /// Records that an object was compressed to this many bytes, unless its slot has another object now.
    pub(super) fn record_compression(&mut self, slot: Slot, object: &Object, length: usize) {
        if self.slots.slots().get(slot).is_some_and(|now| now.is_same(object)) {
            self.memory.remove(object, self.compression_queue.compressed_length(slot));
            self.memory.add(object, Some(length));
            self.compression_queue.record_compression(slot, length);
        }
    }

    /// Returns the cold objects of the next `limit` slots from a slot on, and the slot after these.
    pub(super) fn cold_objects_from(&self, slot: Slot, limit: usize) -> (Vec<(Slot, Object)>, Slot) {
        let end = self.slots.end().min(slot.saturating_add(limit as Slot));
        let slots = self.slots.slots();
        let cold = (slot..end).filter(|slot| self.compression_queue.compressed_length(*slot).is_some());
        (cold.filter_map(|slot| Some((slot, slots.get(slot)?.clone()))).collect(), end)
    }

    pub(super) fn has_slot(&self, slot: Slot) -> bool {
        slot < self.slots.end()
    }

    pub(super) fn memory(&self) -> Memory {
        let indices = self.indices.iter().map(|(_, index)| index.size()).sum::<usize>();
        let own = self.slots.size()
            + self.table.allocation_size()
            + self.order.size()
            + self.compression_queue.size()
            + self.kept_values.load(Ordering::Relaxed);
        Memory { indices: indices + own, ..self.memory }
    }

    pub(super) fn sources(&self) -> Arc<[(IndexId, IndexSource)]> {
        self.sources.clone()
    }

    pub(super) fn index(&self, name: &str) -> Result<&Index, Error> {
        let id = self.names.get(name);
        id.and_then(|id| self.index_by_id(*id)).ok_or_else(|| Error::UnknownIndex(name.to_owned()))
    }

    /// Returns an index that has left out no object of these namespaces.
    pub(super) fn complete_index(&self, name: &str, namespaces: &Namespaces) -> Result<&Index, Error> {
        let index = self.index(name)?;
        match index.incomplete(namespaces) {
            None => Ok(index),
            Some((namespace, left_out)) => {
                Err(Error::Incomplete { index: name.to_owned(), namespace: namespace.to_owned(), left_out })
            }
        }
    }

    pub(super) fn index_mut(&mut self, name: &str) -> Option<(&mut Index, &Slots)> {
        let id = *self.names.get(name)?;
        let Self { indices, slots, .. } = self;
        let (_, index) = indices.iter_mut().find(|(other, _)| *other == id)?;
        Some((index, slots.slots()))
    }

    /// Whether an index has left-out objects that may have room now.
    pub(super) fn may_retry_left_out(&self) -> bool {
        self.indices.iter().any(|(_, index)| index.may_have_room())
    }

    /// Returns the next left-out object that may have room now, with its key, index and source. Returns each
    /// object once until more becomes free.
    pub(super) fn next_left_out(&mut self) -> Option<(IndexId, IndexSource, ObjectKey, Object)> {
        let (id, source, slot) = self.indices.iter_mut().find_map(|(id, index)| {
            let slot = index.next_left_out()?;
            Some((*id, index.source().clone(), slot))
        })?;
        let (key, object) = self.entry(slot)?;
        Some((id, source, key, object))
    }

    pub(super) fn index_by_id(&self, id: IndexId) -> Option<&Index> {
        self.indices.iter().find(|(other, _)| *other == id).map(|(_, index)| index)
    }

    /// Files an object in an index, unless its key has another object now, which the writer has filed.
    pub(super) fn file(&mut self, id: IndexId, object: &Object, key: &ObjectKey, filing: Filing<'_>) {
        let Some(slot) = self.find(key) else { return };
        let slots = self.slots.slots();
        if slots.get(slot).is_some_and(|now| now.is_same(object))
            && let Some((_, index)) = self.indices.iter_mut().find(|(other, _)| *other == id)
        {
            index.put(slot, filing, slots);
        }
    }

    /// Returns the index with this source, which is created if necessary, and counts one more user of it.
    pub(super) fn use_index(&mut self, source: IndexSource) -> IndexId {
        if let Some((id, index)) = self.indices.iter_mut().find(|(_, index)| *index.source() == source) {
            index.n_users += 1;
            return *id;
        }
        let id = IndexId(self.next_index);
        self.next_index += 1;
        self.indices.push((id, Index::new(source, self.limits)));
        self.update_sources();
        id
    }

    /// Counts one user less of an index. Removes the index and returns it when that was the last user.
    pub(super) fn release_index(&mut self, id: IndexId) -> Option<Index> {
        let position = self.indices.iter().position(|(other, _)| *other == id)?;
        let index = &mut self.indices[position].1;
        index.n_users -= 1;
        if index.n_users > 0 {
            return None;
        }
        let (_, index) = self.indices.swap_remove(position);
        self.update_sources();
        Some(index)
    }

    fn update_sources(&mut self) {
        self.sources = self.indices.iter().map(|(id, index)| (*id, index.source().clone())).collect();
    }
}

// === impl View ===

impl View {
    pub(super) fn new(slots: Slots, order: Order) -> Self {
        Self { slots, order }
    }

    /// Returns the objects of these namespaces, sorted by key.
    pub(crate) fn objects<'v>(&'v self, namespaces: &'v Namespaces) -> impl Iterator<Item = &'v Object> {
        self.order.within(&self.slots, namespaces, None).filter_map(|slot| self.slots.get(slot))
    }

    /// Returns the number of objects of these namespaces.
    pub(super) fn count(&self, namespaces: &Namespaces) -> usize {
        self.order.count(&self.slots, namespaces)
    }

    /// Returns the keys of these namespaces, sorted.
    pub(super) fn keys_within<'v>(
        &'v self,
        namespaces: &'v Namespaces,
    ) -> impl Iterator<Item = &'v ObjectKey> {
        self.slots_within(namespaces).filter_map(|slot| self.slots.key(slot))
    }

    pub(super) fn slots_within<'v>(&'v self, namespaces: &'v Namespaces) -> impl Iterator<Item = Slot> + 'v {
        self.order.within(&self.slots, namespaces, None)
    }

    /// Returns all objects with their keys, sorted.
    pub(super) fn entries(&self) -> impl Iterator<Item = (&ObjectKey, &Object)> {
        self.order.iter().filter_map(|slot| Some((self.slots.key(slot)?, self.slots.get(slot)?)))
    }

    /// Returns the namespaces that have objects, sorted.
    pub(super) fn namespaces(&self) -> impl Iterator<Item = &str> {
        let mut last: Option<&str> = None;
        std::iter::from_fn(move || {
            let next = self.order.first_after(&self.slots, last)?;
            last = Some(self.slots.key(next)?.namespace());
            last
        })
    }
}

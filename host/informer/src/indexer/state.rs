//! What is behind the cache's lock.

use std::collections::BTreeMap;

use hashbrown::HashTable;

use super::compression_queue::CompressionQueue;
use super::index::{Filing, Index, IndexSource, Limits, Values};
use super::order::Order;
use super::slots::{Slot, SlotTable, Slots};
use super::{Error, IndexId, Memory};
use crate::names::ObjectKey;
use crate::namespaces::Namespaces;
use crate::object::Object;
use crate::resource_version::Version;

/// Below this many entries the table never bothers to give memory back.
const SMALL: usize = 64;

#[derive(Default)]
pub(super) struct CacheState {
    slots: SlotTable,
    /// The slots by the hash of their keys.
    table: HashTable<Slot>,
    /// The slots by their keys.
    order: Order,
    pub(super) compression_queue: CompressionQueue,
    /// Several names may share an index.
    pub(super) names: BTreeMap<String, IndexId>,
    pub(super) indices: Vec<(IndexId, Index)>,
    next_index: u64,
    pub(super) limits: Limits,
    pub(super) resource_version: Version,
    pub(super) memory: Memory,
}

/// Everything that was in the cache at one moment, by reference.
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

    /// Returns a slot's object with its key.
    pub(super) fn entry(&self, slot: Slot) -> Option<(ObjectKey, Object)> {
        let slots = self.slots.slots();
        Some((slots.key(slot)?.clone(), slots.get(slot)?.clone()))
    }

    pub(super) fn view(&self) -> View {
        View { slots: self.slots.slots().clone(), order: self.order.clone() }
    }

    /// Stores an object; returns the one that was there.
    pub(super) fn put(
        &mut self,
        key: &ObjectKey,
        object: Object,
        mut filings: Vec<(IndexId, Filing<'_>)>,
    ) -> Option<Object> {
        let cold = object.cold_length();
        let found = self.find(key);
        self.memory.add(&object, cold);
        let indexed = (!self.indices.is_empty()).then(|| object.clone());
        let (slot, old) = match found {
            Some(slot) => {
                let old = self.slots.replace(slot, object);
                if let Some(old) = &old {
                    self.memory.remove(old, self.compression_queue.compressed_length(slot));
                }
                (slot, old)
            }
            None => {
                let slot = self.slots.insert(key, object);
                let slots = self.slots.slots();
                let hash = |slot: &Slot| slots.key(*slot).map_or(0, ObjectKey::hash_value);
                self.table.insert_unique(key.hash_value(), slot, hash);
                self.order.insert(slot, slots);
                (slot, None)
            }
        };
        self.compression_queue.record_write(slot, cold);
        if let Some(object) = indexed {
            for (id, index) in &mut self.indices {
                let filing = match filings.iter().position(|(filed, _)| filed == id) {
                    Some(position) => filings.swap_remove(position).1,
                    // The index was added in this very moment.
                    None => Values::of(index.source(), &object),
                };
                index.put(slot, filing, self.slots.slots());
            }
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

    /// Takes out everything but the indices' definitions; returns it, to be dropped without the lock.
    pub(super) fn clear(&mut self) -> impl Sized + use<> {
        let has_keys = self.slots.slots().has_keys();
        let slots = if has_keys { SlotTable::default().with_keys() } else { SlotTable::default() };
        let old = std::mem::replace(&mut self.slots, slots);
        self.compression_queue.clear();
        self.memory = Memory { dictionaries: self.memory.dictionaries, ..Memory::default() };
        let filed: Vec<_> = self.indices.iter_mut().map(|(_, index)| index.clear()).collect();
        (old, std::mem::take(&mut self.table), std::mem::take(&mut self.order), filed)
    }

    /// Gives memory back after many deletions.
    fn shrink(&mut self) {
        if self.order.len() == 0 {
            drop(self.clear());
        } else if self.table.capacity() > SMALL && self.order.len() < self.table.capacity() / 8 {
            let slots = self.slots.slots();
            let hash = |slot: &Slot| slots.key(*slot).map_or(0, ObjectKey::hash_value);
            self.table.shrink_to(SMALL.max(self.order.len() * 2), hash);
        }
    }

    /// Notes that a slot's object was compressed to this many bytes, if it is still that object.
    pub(super) fn record_compression(&mut self, slot: Slot, object: &Object, length: usize) {
        if self.slots.slots().get(slot).is_some_and(|now| now.is_same(object)) {
            self.memory.remove(object, self.compression_queue.compressed_length(slot));
            self.memory.add(object, Some(length));
            self.compression_queue.record_compression(slot, length);
        }
    }

    /// Returns the objects from a slot on whose texts may be compressed anew, at most so many, and the slot after them.
    pub(super) fn cold_after(&self, slot: Slot, limit: usize) -> (Vec<(Slot, Object)>, Slot) {
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
            + self.compression_queue.size();
        Memory { indices: indices + own, ..self.memory }
    }

    pub(super) fn sources(&self) -> Vec<(IndexId, IndexSource)> {
        self.indices.iter().map(|(id, index)| (*id, index.source().clone())).collect()
    }

    pub(super) fn index(&self, name: &str) -> Result<&Index, Error> {
        let id = self.names.get(name);
        id.and_then(|id| self.index_by_id(*id)).ok_or_else(|| Error::UnknownIndex(name.to_owned()))
    }

    /// Returns an index of which nothing in these namespaces was left out.
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

    /// Whether an index left out objects that may have room by now.
    pub(super) fn may_retry_left_out(&self) -> bool {
        self.indices.iter().any(|(_, index)| index.may_have_room())
    }

    /// Returns an object that an index left out and that may have room by now, with what is needed to file
    /// it. None is returned twice before more becomes free.
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

    /// Files a slot's object in an index, unless it is another one by now: that one has been filed by the writer.
    pub(super) fn file(&mut self, id: IndexId, object: &Object, key: &ObjectKey, filing: Filing<'_>) {
        let Some(slot) = self.find(key) else { return };
        let slots = self.slots.slots();
        if slots.get(slot).is_some_and(|now| now.is_same(object))
            && let Some((_, index)) = self.indices.iter_mut().find(|(other, _)| *other == id)
        {
            index.put(slot, filing, slots);
        }
    }

    /// Returns the index with this source, one user more.
    pub(super) fn use_index(&mut self, source: IndexSource) -> IndexId {
        if let Some((id, index)) = self.indices.iter_mut().find(|(_, index)| *index.source() == source) {
            index.n_users += 1;
            return *id;
        }
        let id = IndexId(self.next_index);
        self.next_index += 1;
        self.indices.push((id, Index::new(source, self.limits)));
        id
    }

    /// Takes a user from an index; returns it if that was the last one.
    pub(super) fn free_index(&mut self, id: IndexId) -> Option<Index> {
        let position = self.indices.iter().position(|(other, _)| *other == id)?;
        let index = &mut self.indices[position].1;
        index.n_users -= 1;
        (index.n_users == 0).then(|| self.indices.swap_remove(position).1)
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

    /// Returns how many objects these namespaces have.
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
            let next = self.order.first_behind(&self.slots, last)?;
            last = Some(self.slots.key(next)?.namespace());
            last
        })
    }
}

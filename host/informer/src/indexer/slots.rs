//! Where the objects lie: numbered slots in chunks that snapshots share with the cache.
//!
//! A snapshot is a reference to the list of chunks. The writer copies that list, and a chunk, before it changes them if a snapshot holds
//! them, so that readers of everything neither hold a lock nor see two states.

use triomphe::Arc;

use crate::names::ObjectKey;
use crate::object::Object;

/// How many objects are in a chunk.
const CHUNK: usize = 256;

/// The number of an object's place, which it keeps while it is in the cache.
pub(super) type Slot = u32;

/// Objects by slot.
#[derive(Clone, Default)]
pub(super) struct Slots {
    chunks: Chunks<Object>,
    /// The keys, in chunks alike, where a key function gives objects others than their own.
    keys: Option<Chunks<ObjectKey>>,
}

type Chunks<T> = Arc<Vec<Arc<[Option<T>; CHUNK]>>>;

/// Slots, and which of them are free.
#[derive(Default)]
pub(super) struct SlotTable {
    slots: Slots,
    free: Vec<Slot>,
    /// All slots from here on have never been used.
    end: Slot,
}

// === impl Slots ===

impl Slots {
    pub(super) fn get(&self, slot: Slot) -> Option<&Object> {
        self.chunks.get(slot as usize / CHUNK)?[slot as usize % CHUNK].as_ref()
    }

    /// Returns the key under which a slot's object is kept.
    pub(super) fn key(&self, slot: Slot) -> Option<&ObjectKey> {
        match &self.keys {
            None => self.get(slot).map(Object::key),
            Some(keys) => keys.get(slot as usize / CHUNK)?[slot as usize % CHUNK].as_ref(),
        }
    }

    /// Whether keys are given with the objects.
    pub(super) fn has_keys(&self) -> bool {
        self.keys.is_some()
    }

    fn place(&mut self, slot: Slot) -> Option<&mut Option<Object>> {
        place(&mut self.chunks, slot)
    }
}

// === impl SlotTable ===

impl SlotTable {
    pub(super) fn slots(&self) -> &Slots {
        &self.slots
    }

    /// All slots from here on have never been used.
    pub(super) fn end(&self) -> Slot {
        self.end
    }

    /// From now on keys are given with the objects.
    pub(super) fn with_keys(mut self) -> Self {
        self.slots.keys = Some(Arc::default());
        self
    }

    /// Puts an object into a free slot.
    pub(super) fn insert(&mut self, key: &ObjectKey, object: Object) -> Slot {
        let slot = self.free.pop().unwrap_or_else(|| {
            let slot = self.end;
            self.end += 1;
            if slot as usize / CHUNK == self.slots.chunks.len() {
                Arc::make_mut(&mut self.slots.chunks).push(Arc::new([const { None }; CHUNK]));
                if let Some(keys) = &mut self.slots.keys {
                    Arc::make_mut(keys).push(Arc::new([const { None }; CHUNK]));
                }
            }
            slot
        });
        self.name(slot, Some(key));
        self.exchange(slot, Some(object));
        slot
    }

    /// Puts another object into a slot that is in use; returns the one that was there.
    pub(super) fn replace(&mut self, slot: Slot, object: Object) -> Option<Object> {
        self.exchange(slot, Some(object))
    }

    pub(super) fn remove(&mut self, slot: Slot) -> Option<Object> {
        self.free.push(slot);
        self.name(slot, None);
        self.exchange(slot, None)
    }

    fn name(&mut self, slot: Slot, key: Option<&ObjectKey>) {
        if let Some(place) = self.slots.keys.as_mut().and_then(|keys| place(keys, slot)) {
            *place = key.cloned();
        }
    }

    fn exchange(&mut self, slot: Slot, object: Option<Object>) -> Option<Object> {
        let place = self.slots.place(slot)?;
        std::mem::replace(place, object)
    }

    /// Returns how many bytes the slots take.
    pub(super) fn size(&self) -> usize {
        self.slots.chunks.len() * size_of::<[Option<Object>; CHUNK]>()
            + self.slots.chunks.capacity() * size_of::<usize>()
            + self.free.capacity() * size_of::<Slot>()
    }
}

fn place<T: Clone>(chunks: &mut Chunks<T>, slot: Slot) -> Option<&mut Option<T>> {
    let chunk = Arc::make_mut(chunks).get_mut(slot as usize / CHUNK)?;
    Some(&mut Arc::make_mut(chunk)[slot as usize % CHUNK])
}

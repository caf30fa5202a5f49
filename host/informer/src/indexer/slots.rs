//! Numbered slots for the objects, in chunks that views share with the cache.
//!
//! A view holds a reference to the list of chunks. While a view exists, the writer copies the list and each
//! chunk before it changes them. So readers of all objects hold no lock, and see one state.

use triomphe::Arc;

use crate::names::ObjectKey;
use crate::object::Object;

/// The slots in a chunk.
const CHUNK: usize = 256;

/// The number of an object's slot. It does not change while the object is cached.
pub(super) type Slot = u32;

/// Objects by slot.
#[derive(Clone, Default)]
pub(super) struct Slots {
    chunks: Chunks<Object>,
    /// The keys of the objects, if a key function computes them. Otherwise each object has its own key.
    keys: Option<Chunks<ObjectKey>>,
}

type Chunks<T> = Arc<Vec<Arc<[Option<T>; CHUNK]>>>;

/// Slots, and a list of the free ones.
#[derive(Default)]
pub(super) struct SlotTable {
    slots: Slots,
    free: Vec<Slot>,
    /// The first slot that was never used.
    end: Slot,
}

// === impl Slots ===

impl Slots {
    pub(super) fn get(&self, slot: Slot) -> Option<&Object> {
        self.chunks.get(slot as usize / CHUNK)?[slot as usize % CHUNK].as_ref()
    }

    /// Returns the key of a slot's object.
    pub(super) fn key(&self, slot: Slot) -> Option<&ObjectKey> {
        match &self.keys {
            None => self.get(slot).map(Object::key),
            Some(keys) => keys.get(slot as usize / CHUNK)?[slot as usize % CHUNK].as_ref(),
        }
    }

    /// Whether a key function computes the keys.
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

    /// Returns the first slot that was never used.
    pub(super) fn end(&self) -> Slot {
        self.end
    }

    /// Stores a key with each object, for keys that a key function computes.
    pub(super) fn with_keys(mut self) -> Self {
        self.slots.keys = Some(Arc::default());
        self
    }

    /// Stores an object in a free slot. `key` is the key that a key function computed.
    pub(super) fn insert(&mut self, key: Option<&ObjectKey>, object: Object) -> Slot {
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
        self.set_key(slot, key);
        self.exchange(slot, Some(object));
        slot
    }

    /// Stores another object in a used slot. Returns the previous one.
    pub(super) fn replace(&mut self, slot: Slot, object: Object) -> Option<Object> {
        self.exchange(slot, Some(object))
    }

    pub(super) fn remove(&mut self, slot: Slot) -> Option<Object> {
        self.free.push(slot);
        self.set_key(slot, None);
        self.exchange(slot, None)
    }

    fn set_key(&mut self, slot: Slot, key: Option<&ObjectKey>) {
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

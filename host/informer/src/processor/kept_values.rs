//! The values of declared fields that are kept of cached objects, by the slot of the object.

use crate::object::StateValues;

/// Longer values are not kept: at the object's next change its old text is read again.
const MAX_KEPT: usize = 1 << 10;

/// Longer values of an object that has not changed are not kept. There may be many such objects.
const MAX_FOUND: usize = 128;

/// How many chunks of an earlier plan are freed at a time while nothing changes.
const FREED: usize = 16;

/// The size of the values is counted in the cache's memory when it has changed by as much.
const SIZE_STEP: usize = 1 << 10;

const CHUNK: usize = 64;

/// The values that the plan's pointers have in cached objects.
///
/// It has those of objects that changed since the plan has its pointers, and short ones that were found for
/// an initial add. Nothing is read for this purpose alone: a list costs neither time nor memory.
///
/// The informer's one consumer changes the cache and these values under one lock. Listeners read and set the
/// values of a state under the same lock, if the cache has that state. So the values of a slot are always
/// those of the state that the cache has.
#[derive(Default)]
pub(super) struct KeptValues {
    /// The number of the plan's pointers. None before the first plan.
    pointers: Option<u32>,
    chunks: Vec<Option<Box<Chunk>>>,
    /// Chunks of an earlier plan that are not freed yet.
    outdated: Vec<Option<Box<Chunk>>>,
    n_bytes: usize,
    /// The size as last returned by [`new_size`](Self::new_size).
    known_size: usize,
}

struct Chunk {
    values: [Option<StateValues>; CHUNK],
    n_used: u32,
}

/// Returns whether values of an object that has not changed are kept.
pub(super) fn are_short(values: &StateValues) -> bool {
    values.size() <= MAX_FOUND
}

// === impl KeptValues ===

impl KeptValues {
    /// Returns whether they are the values at the pointers with this number.
    pub(super) fn are_of(&self, pointers: u32) -> bool {
        self.pointers == Some(pointers)
    }

    pub(super) fn has_pointers_of(&self, values: &StateValues) -> bool {
        self.pointers.is_some_and(|pointers| values.are_of(pointers))
    }

    pub(super) fn get(&self, slot: u32) -> Option<&StateValues> {
        self.chunks.get(slot as usize / CHUNK)?.as_ref()?.values[slot as usize % CHUNK].as_ref()
    }

    /// Replaces the values of a slot. Long values are not kept.
    pub(super) fn set(&mut self, slot: u32, values: Option<StateValues>) {
        self.free_some();
        let values = values.filter(|values| values.size() <= MAX_KEPT);
        let number = slot as usize / CHUNK;
        if number >= self.chunks.len() {
            if values.is_none() {
                return;
            }
            self.chunks.resize_with(number + 1, || None);
        }
        let chunk = match &mut self.chunks[number] {
            Some(chunk) => chunk,
            None if values.is_none() => return,
            none => {
                self.n_bytes += size_of::<Chunk>();
                none.insert(Box::new(Chunk { values: [const { None }; CHUNK], n_used: 0 }))
            }
        };
        chunk.n_used += u32::from(values.is_some());
        self.n_bytes += values.as_ref().map_or(0, StateValues::size);
        let old = std::mem::replace(&mut chunk.values[slot as usize % CHUNK], values);
        chunk.n_used -= u32::from(old.is_some());
        self.n_bytes -= old.as_ref().map_or(0, StateValues::size);
        if chunk.n_used == 0 {
            self.chunks[number] = None;
            self.n_bytes -= size_of::<Chunk>();
        }
    }

    /// Sets the values of an unchanged object, unless it has some.
    pub(super) fn set_found(&mut self, slot: u32, values: &StateValues) {
        if self.get(slot).is_none() {
            self.set(slot, Some(values.clone()));
        }
    }

    /// Notes the pointers of a plan. If they are others than before, forgets all values. The memory is freed
    /// with the next changes, so that this takes no time.
    pub(super) fn follow(&mut self, pointers: u32) {
        if self.pointers.replace(pointers) == Some(pointers) {
            return;
        }
        self.outdated.append(&mut self.chunks);
        self.chunks.shrink_to_fit();
        self.n_bytes = 0;
    }

    /// Frees some of the memory of an earlier plan.
    pub(super) fn free_some(&mut self) {
        if self.outdated.pop().is_some() && self.outdated.is_empty() {
            self.outdated = Vec::new();
        }
    }

    /// Frees more of it; returns whether any is left.
    pub(super) fn free_many(&mut self) -> bool {
        (0..FREED).for_each(|_| self.free_some());
        !self.outdated.is_empty()
    }

    /// Returns how many bytes the values take, without those of an earlier plan, if that has changed much
    /// since the last call that returned it.
    pub(super) fn new_size(&mut self) -> Option<usize> {
        let size = self.n_bytes + self.chunks.capacity() * size_of::<Option<Box<Chunk>>>();
        let is_new = size.abs_diff(self.known_size) >= SIZE_STEP || size == 0 && self.known_size > 0;
        is_new.then(|| {
            self.known_size = size;
            size
        })
    }
}

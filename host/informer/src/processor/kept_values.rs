//! The values of declared fields that the matcher keeps of cached objects, by the slot of the object.

use crate::object::StateValues;

/// Longer values are not kept: at the object's next change its old text is read again.
const MAX_KEPT: usize = 1 << 10;

const CHUNK: usize = 64;

/// The values that the plan's pointers have in cached objects.
///
/// It has those of objects that changed since the plan has its pointers. The others were not read for this
/// purpose: a list costs neither time nor memory.
#[derive(Default)]
pub(super) struct KeptValues {
    chunks: Vec<Option<Box<Chunk>>>,
    /// Chunks of an earlier plan that are not freed yet.
    outdated: Vec<Option<Box<Chunk>>>,
    n_bytes: usize,
}

struct Chunk {
    values: [Option<StateValues>; CHUNK],
    n_used: u32,
}

// === impl KeptValues ===

impl KeptValues {
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

    /// Forgets all values, since the plan has other pointers. The memory is freed with the next changes, so
    /// that this takes no time.
    pub(super) fn forget_all(&mut self) {
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

    /// Returns how many bytes the values take, without those of an earlier plan.
    pub(super) fn size(&self) -> usize {
        self.n_bytes + self.chunks.capacity() * size_of::<Option<Box<Chunk>>>()
    }
}

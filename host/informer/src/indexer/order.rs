//! Slots, sorted by the keys of their objects.

use std::ops::Bound;

use triomphe::Arc;

use super::slots::{Slot, Slots};
use crate::names::ObjectKey;
use crate::namespaces::Namespaces;

/// The most slots in a chunk.
const CHUNK: usize = 512;

/// A set of slots, sorted by the keys of their objects. Views share its chunks.
#[derive(Clone, Debug, Default)]
pub(super) struct Order {
    /// No chunk is empty.
    chunks: Vec<Arc<Vec<Slot>>>,
    length: usize,
}

/// A position in an order, or its end.
#[derive(Clone, Copy, Debug)]
struct Position {
    chunk: usize,
    offset: usize,
}

// === impl Order ===

impl Order {
    pub(super) fn len(&self) -> usize {
        self.length
    }

    /// Returns the first position whose key does not satisfy `before`. All keys before it must satisfy
    /// `before`.
    fn seek(&self, slots: &Slots, before: impl Fn(&ObjectKey) -> bool) -> Position {
        let is_before = |slot: &Slot| slots.key(*slot).is_some_and(&before);
        let chunk = self.chunks.partition_point(|chunk| chunk.last().is_some_and(&is_before));
        let offset = self.chunks.get(chunk).map_or(0, |chunk| chunk.partition_point(&is_before));
        Position { chunk, offset }
    }

    /// Returns all slots, in order.
    pub(super) fn iter(&self) -> impl Iterator<Item = Slot> {
        self.chunks.iter().flat_map(|chunk| chunk.iter()).copied()
    }

    /// Returns the slots from a position to the end.
    fn from(&self, Position { chunk, offset }: Position) -> impl Iterator<Item = Slot> {
        let first = self.chunks.get(chunk).map_or(&[][..], |chunk| &chunk[offset..]);
        let rest = self.chunks.get(chunk + 1..).unwrap_or_default().iter().flat_map(|chunk| chunk.iter());
        first.iter().chain(rest).copied()
    }

    /// Returns the slots of these namespaces after a key, in order.
    pub(super) fn within<'o>(
        &'o self,
        slots: &'o Slots,
        namespaces: &'o Namespaces,
        after: Option<&'o ObjectKey>,
    ) -> impl Iterator<Item = Slot> + 'o {
        let start = move |namespace: Option<&str>| match (after, namespace) {
            (Some(after), Some(namespace)) if after.namespace() < namespace => {
                self.seek(slots, |key| key.namespace() < namespace)
            }
            (Some(after), _) => self.seek(slots, |key| key <= after),
            (None, Some(namespace)) => self.seek(slots, |key| key.namespace() < namespace),
            (None, None) => Position { chunk: 0, offset: 0 },
        };
        let everywhere = matches!(namespaces, Namespaces::All).then(|| self.from(start(None)));
        let each = match namespaces {
            Namespaces::All => None,
            Namespaces::Only(namespaces) => {
                let from = after.map_or("", ObjectKey::namespace);
                let namespaces = namespaces.range::<str, _>((Bound::Included(from), Bound::Unbounded));
                Some(namespaces.flat_map(move |namespace| {
                    let is_here =
                        move |slot: &Slot| slots.key(*slot).is_some_and(|key| key.namespace() == namespace);
                    self.from(start(Some(namespace))).take_while(is_here)
                }))
            }
        };
        everywhere.into_iter().flatten().chain(each.into_iter().flatten())
    }

    /// Returns the first slot after all slots of a namespace. Returns the first slot of all for `None`.
    pub(super) fn first_after(&self, slots: &Slots, namespace: Option<&str>) -> Option<Slot> {
        let start = self.seek(slots, |key| namespace.is_some_and(|namespace| key.namespace() <= namespace));
        self.from(start).next()
    }

    /// Returns how many slots these namespaces have. It does not iterate them.
    pub(super) fn count(&self, slots: &Slots, namespaces: &Namespaces) -> usize {
        match namespaces {
            Namespaces::All => self.length,
            Namespaces::Only(namespaces) => namespaces
                .iter()
                .map(|namespace| {
                    let start = self.seek(slots, |key| key.namespace() < namespace.as_str());
                    let end = self.seek(slots, |key| key.namespace() <= namespace.as_str());
                    self.distance(start, end)
                })
                .sum(),
        }
    }

    fn distance(&self, start: Position, end: Position) -> usize {
        let chunks = self.chunks.get(start.chunk..end.chunk).unwrap_or_default();
        chunks.iter().map(|chunk| chunk.len()).sum::<usize>() + end.offset - start.offset
    }

    /// Adds a slot, which must contain its object already. Adding a slot again changes nothing.
    pub(super) fn insert(&mut self, slot: Slot, slots: &Slots) {
        let Some(key) = slots.key(slot) else { return };
        let Position { chunk, offset } = self.seek(slots, |other| other < key);
        let Some(found) = self.chunks.get_mut(chunk) else {
            self.push(slot);
            return;
        };
        if found.get(offset) == Some(&slot) {
            return;
        }
        let slots_here = Arc::make_mut(found);
        slots_here.insert(offset, slot);
        self.length += 1;
        if slots_here.len() > CHUNK {
            let mut tail = slots_here.split_off(CHUNK / 2);
            tail.shrink_to_fit();
            self.chunks.insert(chunk + 1, Arc::new(tail));
        }
    }

    /// Adds a slot at the end. Slots that are added in order fill whole chunks.
    fn push(&mut self, slot: Slot) {
        self.length += 1;
        match self.chunks.last_mut() {
            Some(last) if last.len() < CHUNK => Arc::make_mut(last).push(slot),
            _ => self.chunks.push(Arc::new(vec![slot])),
        }
    }

    /// Removes a slot, which must still contain its object.
    pub(super) fn remove(&mut self, slot: Slot, slots: &Slots) {
        let Some(key) = slots.key(slot) else { return };
        let Position { chunk, offset } = self.seek(slots, |other| other < key);
        let Some(found) = self.chunks.get_mut(chunk).filter(|found| found.get(offset) == Some(&slot)) else {
            return;
        };
        let slots_here = Arc::make_mut(found);
        slots_here.remove(offset);
        self.length -= 1;
        if slots_here.is_empty() {
            self.chunks.remove(chunk);
        } else if slots_here.len() < slots_here.capacity() / 4 {
            slots_here.shrink_to(slots_here.len() * 2);
        }
    }

    /// Returns how many bytes the chunks take.
    pub(super) fn size(&self) -> usize {
        let chunks = self.chunks.iter().map(|chunk| 40 + chunk.capacity() * size_of::<Slot>());
        self.chunks.capacity() * size_of::<usize>() + chunks.sum::<usize>()
    }
}

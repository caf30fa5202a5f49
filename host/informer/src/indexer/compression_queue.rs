//! The queue of hot objects that wait for compression.
//!
//! Age is counted in ticks ([`CompressionQueue::tick`]), so that a write reads no clock. Each hot slot is
//! queued once. A slot that was written again after it was queued moves to the end when it reaches the front.

use std::collections::VecDeque;

use super::slots::Slot;

/// The slots of hot objects, the least recently written first.
#[derive(Default)]
pub(super) struct CompressionQueue {
    /// Slots, and the tick at which each was queued.
    queue: VecDeque<(Slot, u32)>,
    /// By slot.
    records: Vec<SlotRecord>,
    /// The current tick.
    now: u32,
}

/// The last write of a slot.
#[derive(Clone, Copy, Default)]
struct SlotRecord {
    /// The compressed length that the cache's memory counts for the object; zero for a hot object.
    compressed: u32,
    /// Twice the tick of the last write, plus one while the slot is queued.
    written: u32,
}

// === impl CompressionQueue ===

impl CompressionQueue {
    /// Advances the time by one tick.
    pub(super) fn tick(&mut self) {
        self.now += 1;
    }

    /// Records a write to a slot. `compressed` is the compressed length of a cold object.
    pub(super) fn record_write(&mut self, slot: Slot, compressed: Option<usize>) {
        let position = slot as usize;
        if position >= self.records.len() {
            self.records.resize(position + 1, SlotRecord::default());
        }
        let now = self.now;
        let record = &mut self.records[position];
        let is_queued = record.written & 1;
        record.compressed = compressed.map_or(0, |length| length as u32);
        record.written = now << 1 | is_queued;
        if compressed.is_none() && is_queued == 0 {
            record.written |= 1;
            self.queue.push_back((slot, now));
        }
    }

    /// Records that a slot is free.
    pub(super) fn record_removal(&mut self, slot: Slot) {
        if let Some(record) = self.records.get_mut(slot as usize) {
            // A queued slot leaves the queue when it reaches the front.
            *record = SlotRecord { compressed: 0, written: record.written & 1 };
        }
    }

    /// Records that the object of a slot was compressed to this many bytes.
    pub(super) fn record_compression(&mut self, slot: Slot, length: usize) {
        if let Some(record) = self.records.get_mut(slot as usize) {
            record.compressed = length as u32;
        }
    }

    /// Returns the recorded compressed length of a slot's object. Returns `None` for a hot object.
    pub(super) fn compressed_length(&self, slot: Slot) -> Option<usize> {
        let compressed = self.records.get(slot as usize)?.compressed;
        (compressed != 0).then_some(compressed as usize)
    }

    /// Removes and returns the least recently written slot, if its last write is at least `min_age` ticks
    /// old.
    pub(super) fn pop(&mut self, min_age: u32) -> Option<Slot> {
        while let Some((slot, queued)) = self.queue.front().copied() {
            if queued + min_age > self.now {
                return None;
            }
            self.queue.pop_front();
            let Some(record) = self.records.get_mut(slot as usize) else { continue };
            let written = record.written >> 1;
            if written > queued {
                self.queue.push_back((slot, written));
                continue;
            }
            record.written &= !1;
            if record.compressed == 0 {
                return Some(slot);
            }
        }
        None
    }

    /// Whether no object waits for compression.
    pub(super) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    pub(super) fn clear(&mut self) {
        *self = Self { now: self.now, ..Self::default() };
    }

    /// Frees memory after a burst of writes.
    pub(super) fn shrink(&mut self) {
        if self.queue.len() < self.queue.capacity() / 4 {
            self.queue.shrink_to(self.queue.len() * 2);
        }
    }

    /// Returns how many bytes the queue takes.
    pub(super) fn size(&self) -> usize {
        self.queue.capacity() * size_of::<(Slot, u32)>() + self.records.capacity() * size_of::<SlotRecord>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_recently_written_slot_is_popped_first() {
        let mut queue = CompressionQueue::default();
        queue.record_write(0, None);
        queue.record_write(1, None);
        queue.record_write(2, Some(9));
        assert_eq!(queue.pop(1), None);
        queue.tick();
        queue.record_write(0, None);
        assert_eq!(queue.pop(1), Some(1));
        assert_eq!(queue.pop(1), None);
        assert_eq!(queue.pop(0), Some(0));
        assert!(queue.is_empty());
        assert_eq!((queue.compressed_length(2), queue.compressed_length(1)), (Some(9), None));
    }

    #[test]
    fn a_slot_is_queued_once() {
        let mut queue = CompressionQueue::default();
        for _ in 0..100 {
            queue.record_write(0, None);
        }
        queue.record_removal(0);
        queue.record_write(0, None);
        assert_eq!(queue.queue.len(), 1);
        assert_eq!(queue.pop(0), Some(0));
        assert_eq!(queue.pop(0), None);
    }
}

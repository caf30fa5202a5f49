//! Which objects are plain, and since when nobody has replaced them.
//!
//! Time is counted in ticks of whoever keeps the cache ([`CompressionQueue::tick`]): writing reads no clock. Each plain slot stands in the queue
//! once; one that was written since it was queued goes to its end when it comes up.

use std::collections::VecDeque;

use super::slots::Slot;

/// The slots whose objects may be compressed, oldest first.
#[derive(Default)]
pub(super) struct CompressionQueue {
    queue: VecDeque<(Slot, u32)>,
    marks: Vec<Mark>,
    now: u32,
}

/// What is known of a slot.
#[derive(Clone, Copy, Default)]
struct Mark {
    /// How many bytes its object takes compressed, as it was counted; zero for plain.
    cold: u32,
    /// Twice the tick of its last write, and one more while it is queued.
    written: u32,
}

// === impl CompressionQueue ===

impl CompressionQueue {
    /// Time passes.
    pub(super) fn tick(&mut self) {
        self.now += 1;
    }

    /// Notes that a slot was written.
    pub(super) fn record_write(&mut self, slot: Slot, cold: Option<usize>) {
        let position = slot as usize;
        if position >= self.marks.len() {
            self.marks.resize(position + 1, Mark::default());
        }
        let now = self.now;
        let mark = &mut self.marks[position];
        let is_queued = mark.written & 1;
        mark.cold = cold.map_or(0, |cold| cold as u32);
        mark.written = now << 1 | is_queued;
        if cold.is_none() && is_queued == 0 {
            mark.written |= 1;
            self.queue.push_back((slot, now));
        }
    }

    /// Notes that a slot is free.
    pub(super) fn record_removal(&mut self, slot: Slot) {
        if let Some(mark) = self.marks.get_mut(slot as usize) {
            // It leaves the queue when it comes up.
            *mark = Mark { cold: 0, written: mark.written & 1 };
        }
    }

    pub(super) fn record_compression(&mut self, slot: Slot, length: usize) {
        if let Some(mark) = self.marks.get_mut(slot as usize) {
            mark.cold = length as u32;
        }
    }

    /// Returns how many bytes a slot's object takes compressed, as it was counted; none if it was plain.
    pub(super) fn compressed_length(&self, slot: Slot) -> Option<usize> {
        let cold = self.marks.get(slot as usize)?.cold;
        (cold != 0).then_some(cold as usize)
    }

    /// Takes the oldest slot that was not written for `age` ticks.
    pub(super) fn pop(&mut self, age: u32) -> Option<Slot> {
        while let Some((slot, queued)) = self.queue.front().copied() {
            if queued + age > self.now {
                return None;
            }
            self.queue.pop_front();
            let Some(mark) = self.marks.get_mut(slot as usize) else { continue };
            let written = mark.written >> 1;
            if written > queued {
                self.queue.push_back((slot, written));
                continue;
            }
            mark.written &= !1;
            if mark.cold == 0 {
                return Some(slot);
            }
        }
        None
    }

    /// Whether nothing waits.
    pub(super) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    pub(super) fn clear(&mut self) {
        *self = Self { now: self.now, ..Self::default() };
    }

    /// Gives memory back after a burst.
    pub(super) fn shrink(&mut self) {
        if self.queue.len() < self.queue.capacity() / 4 {
            self.queue.shrink_to(self.queue.len() * 2);
        }
    }

    /// Returns how many bytes it takes.
    pub(super) fn size(&self) -> usize {
        self.queue.capacity() * size_of::<(Slot, u32)>() + self.marks.capacity() * size_of::<Mark>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_that_was_left_alone_comes_first() {
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
    fn a_slot_is_queued_once_whatever_becomes_of_it() {
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

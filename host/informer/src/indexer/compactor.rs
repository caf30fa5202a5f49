//! Keeps a cache small: compresses what nobody has replaced for a while.
//!
//! It has no task and reads no clock: the informer calls [`Compactor::tick`] at times, and [`Compactor::sweep`] for one small slice of work
//! after another as long as there is some, with events in between. What comes by a list is compressed as it arrives.

mod training;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;

use super::Indexer;
use super::slots::Slot;
use crate::object::{Dictionary, Labels, Object};

use self::training::Training;

/// How many ticks an object is left alone before it is compressed.
const AGE: u32 = 4;

/// How many objects are looked at in a slice at most.
const SLICE: usize = 32;

/// After this many bytes of text a slice is over.
const SLICE_BYTES: usize = 128 << 10;

/// Compresses the objects of one cache.
pub(crate) struct Compactor {
    indexer: Indexer,
    /// Beyond this many bytes of plain text nothing is left alone.
    hot_bytes: usize,
    training: Mutex<Training>,
    /// Nothing is to be done until something is written.
    is_idle: AtomicBool,
}

// === impl Compactor ===

impl Compactor {
    pub(crate) fn new(indexer: Indexer, hot_bytes: usize) -> Self {
        Self { indexer, hot_bytes, training: Mutex::default(), is_idle: AtomicBool::new(true) }
    }

    /// Takes an object that a list brings: returns the cached one if it is its equal, else this one, compressed if that can be.
    pub(crate) fn intern(&self, object: Object) -> Object {
        let cached = self.indexer.get(object.key());
        if let Some(cached) = cached.filter(|cached| cached.is_equal_version_of(&object)) {
            return cached;
        }
        self.training.lock().compress_listed(&object);
        object
    }

    /// Notes that something was written; answers whether nothing was to be done before.
    pub(crate) fn wake(&self) -> bool {
        self.is_idle.load(Ordering::Relaxed) && self.is_idle.swap(false, Ordering::Relaxed)
    }

    /// Whether nothing is to be done until something is written.
    pub(crate) fn is_idle(&self) -> bool {
        self.is_idle.load(Ordering::Relaxed)
    }

    /// Whether there is more plain text than there should be.
    pub(crate) fn is_over_budget(&self) -> bool {
        self.indexer.state.read().memory.plain > self.hot_bytes
    }

    /// Time passes: learns, if there is reason to, and forgets what an empty cache needs no more.
    pub(crate) fn tick(&self) {
        self.indexer.state.write().compression_queue.tick();
        self.learn();
    }

    fn learn(&self) {
        let (view, memory) = {
            let state = self.indexer.state.read();
            (state.view(), state.memory())
        };
        let mut training = self.training.lock();
        training.learn(&view, &memory);
        let dictionaries = training.size();
        drop(training);
        self.indexer.state.write().memory.dictionaries = dictionaries;
    }

    /// Does a slice of work; answers whether there may be more to do now.
    pub(crate) fn compact_slice(&self) -> bool {
        if self.indexer.state.read().may_retry_left_out() && self.indexer.retry_left_out() {
            return true;
        }
        if self.training.lock().does_worse() {
            // Before more is compressed, and all of it again.
            self.learn();
        }
        let Some(dictionary) = self.training.lock().dictionary() else {
            // There is too little to learn from: it stays as it is.
            self.drain_queue();
            return false;
        };
        if self.compress_queued(&dictionary) || self.recompress(&dictionary) {
            return true;
        }
        if self.indexer.state.read().compression_queue.is_empty() {
            self.release_memory(&dictionary);
        }
        false
    }

    /// Compresses what has been left alone for long enough.
    fn compress_queued(&self, dictionary: &Arc<Dictionary>) -> bool {
        let mut taken = Vec::with_capacity(SLICE);
        {
            let mut state = self.indexer.state.write();
            let age = if state.memory.plain > self.hot_bytes { 0 } else { AGE };
            let mut bytes = 0;
            while taken.len() < SLICE && bytes < SLICE_BYTES {
                let Some(slot) = state.compression_queue.pop(age) else { break };
                if let Some(object) = state.slots().get(slot) {
                    bytes += object.json_length();
                    taken.push((slot, object.clone()));
                }
            }
        }
        // It may be compressed already, though nobody has counted it.
        let compress = |(_, object): &(Slot, Object)| {
            if !object.is_cold_with(dictionary) {
                object.recompress(dictionary);
            }
            object.cold_length()
        };
        let compressed = taken.iter().map(compress).collect();
        self.note(&taken, compressed, Training::note)
    }

    /// Compresses with the new dictionary what is compressed with an older one.
    fn recompress(&self, dictionary: &Arc<Dictionary>) -> bool {
        let Some(from) = self.training.lock().rework else { return false };
        let (taken, next) = self.indexer.state.read().cold_after(from, SLICE);
        let anew = |(_, object): &(Slot, Object)| {
            if object.is_cold_with(dictionary) { None } else { object.recompress(dictionary) }
        };
        let compressed = taken.iter().map(anew).collect();
        self.note(&taken, compressed, |_, _, _| {});
        let has_more = self.indexer.state.read().has_slot(next);
        let mut training = self.training.lock();
        if training.rework == Some(from) {
            training.rework = has_more.then_some(next);
        }
        has_more
    }

    /// Notes what was compressed to how many bytes; answers whether there was anything.
    fn note(
        &self,
        taken: &[(Slot, Object)],
        compressed: Vec<Option<usize>>,
        judge: impl Fn(&mut Training, usize, usize),
    ) -> bool {
        if taken.is_empty() {
            return false;
        }
        let mut state = self.indexer.state.write();
        let mut training = self.training.lock();
        for ((slot, object), length) in taken.iter().zip(compressed) {
            if let Some(length) = length {
                state.record_compression(*slot, object, length);
                judge(&mut training, object.json_length(), length);
            }
        }
        true
    }

    /// Looks at nothing any more that is too little to learn from.
    fn drain_queue(&self) {
        let mut state = self.indexer.state.write();
        for _ in 0..SLICE {
            if state.compression_queue.pop(AGE).is_none() {
                break;
            }
        }
        let is_idle = state.compression_queue.is_empty();
        self.is_idle.store(is_idle, Ordering::Relaxed);
    }

    /// Everything is done: frees what only doing it needed.
    fn release_memory(&self, dictionary: &Dictionary) {
        self.indexer.state.write().compression_queue.shrink();
        self.is_idle.store(true, Ordering::Relaxed);
        dictionary.release_contexts();
        Labels::release_unused();
        let dictionaries = self.training.lock().size();
        self.indexer.state.write().memory.dictionaries = dictionaries;
    }
}

#[cfg(test)]
mod tests;

//! Compresses the objects of a cache that were not replaced for a while.
//!
//! The compactor has no task and reads no clock. The informer calls [`Compactor::tick`] periodically, and
//! [`Compactor::compact_slice`] until no work is left. It processes events between the slices, and while a
//! dictionary is trained on another thread ([`Compactor::due_training`]). Objects from a list are compressed
//! as they arrive.

mod training;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;

use super::Indexer;
use super::slots::Slot;
use crate::object::{Dictionary, Labels, Object};

use self::training::Training;
pub(crate) use self::training::{DueTraining, Trained};

/// How many ticks after its last write an object is compressed.
const MIN_AGE: u32 = 4;

/// The most objects in a slice.
const SLICE: usize = 32;

/// A slice ends after this many bytes of text.
const SLICE_BYTES: usize = 128 << 10;

/// Compresses the objects of one cache.
pub(crate) struct Compactor {
    indexer: Indexer,
    /// When the hot texts are longer than this, objects are compressed whatever their age.
    hot_bytes: usize,
    training: Mutex<Training>,
    /// Whether no work is left until the next write.
    is_idle: AtomicBool,
}

// === impl Compactor ===

impl Compactor {
    pub(crate) fn new(indexer: Indexer, hot_bytes: usize) -> Self {
        Self { indexer, hot_bytes, training: Mutex::default(), is_idle: AtomicBool::new(true) }
    }

    /// Returns the cached object if it equals an object from a list. Otherwise returns the listed object,
    /// compressed if a dictionary exists.
    pub(crate) fn intern(&self, object: Object) -> Object {
        let cached = self.indexer.get(object.key());
        if let Some(cached) = cached.filter(|cached| cached.is_equal_version_of(&object)) {
            return cached;
        }
        self.training.lock().compress_listed(&object);
        object
    }

    /// Records that the cache was written. Returns whether the compactor was idle.
    pub(crate) fn wake(&self) -> bool {
        self.is_idle.load(Ordering::Relaxed) && self.is_idle.swap(false, Ordering::Relaxed)
    }

    /// Whether no work is left until the next write.
    pub(crate) fn is_idle(&self) -> bool {
        self.is_idle.load(Ordering::Relaxed)
    }

    /// Whether the hot texts are longer than their budget.
    pub(crate) fn is_over_budget(&self) -> bool {
        self.indexer.state.read().memory.plain > self.hot_bytes
    }

    /// Advances the age of the objects by one tick.
    pub(crate) fn tick(&self) {
        self.indexer.state.write().compression_queue.tick();
    }

    /// Returns the training of a dictionary, if one is due: after a tick, and when the dictionary
    /// [compresses worse](Self::compresses_worse).
    pub(crate) fn due_training(&self) -> Option<DueTraining> {
        let memory = self.indexer.state.read().memory();
        let is_due = self.training.lock().is_due(&memory);
        self.record_dictionaries();
        is_due.then(|| DueTraining::new(self.indexer.state.read().view(), memory))
    }

    /// Adopts a dictionary that was trained, if it is better.
    pub(crate) fn end_training(&self, trained: Trained) {
        self.training.lock().conclude(trained);
        self.record_dictionaries();
    }

    /// Whether the dictionary compresses worse than expected. A better one now saves compressing objects
    /// twice.
    pub(crate) fn compresses_worse(&self) -> bool {
        self.training.lock().compresses_worse()
    }

    fn record_dictionaries(&self) {
        let dictionaries = self.training.lock().size();
        self.indexer.state.write().memory.dictionaries = dictionaries;
    }

    /// Does a slice of work. Returns whether more work may be left now.
    pub(crate) fn compact_slice(&self) -> bool {
        if self.indexer.state.read().may_retry_left_out() && self.indexer.retry_left_out() {
            return true;
        }
        let Some(dictionary) = self.training.lock().dictionary() else {
            // The cache has too little text for a dictionary: the objects stay hot.
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

    /// Compresses the next objects of the queue. Returns whether it had any.
    fn compress_queued(&self, dictionary: &Arc<Dictionary>) -> bool {
        let mut taken = Vec::with_capacity(SLICE);
        {
            let mut state = self.indexer.state.write();
            let min_age = if state.memory.plain > self.hot_bytes { 0 } else { MIN_AGE };
            let mut bytes = 0;
            while taken.len() < SLICE && bytes < SLICE_BYTES {
                let Some(slot) = state.compression_queue.pop(min_age) else { break };
                if let Some(object) = state.slots().get(slot) {
                    bytes += object.json_length();
                    taken.push((slot, object.clone()));
                }
            }
        }
        // An object may be cold already although the queue has it as hot.
        let compress = |(_, object): &(Slot, Object)| {
            if !object.is_compressed_with(dictionary) {
                object.recompress(dictionary);
            }
            object.compressed_length()
        };
        let compressed = taken.iter().map(compress).collect();
        self.record(&taken, compressed, Training::record_compression)
    }

    /// Compresses the next cold objects with the current dictionary if they have an older one. Returns
    /// whether more may follow.
    fn recompress(&self, dictionary: &Arc<Dictionary>) -> bool {
        let Some(from) = self.training.lock().recompress_from else { return false };
        let (taken, next) = self.indexer.state.read().cold_objects_from(from, SLICE);
        let recompress = |(_, object): &(Slot, Object)| {
            if object.is_compressed_with(dictionary) { None } else { object.recompress(dictionary) }
        };
        let compressed = taken.iter().map(recompress).collect();
        self.record(&taken, compressed, |_, _, _| {});
        let has_more = self.indexer.state.read().has_slot(next);
        let mut training = self.training.lock();
        if training.recompress_from == Some(from) {
            training.recompress_from = has_more.then_some(next);
        }
        has_more
    }

    /// Records the compressed lengths of objects. Returns whether the slice had any objects.
    fn record(
        &self,
        taken: &[(Slot, Object)],
        compressed: Vec<Option<usize>>,
        observe: impl Fn(&mut Training, usize, usize),
    ) -> bool {
        if taken.is_empty() {
            return false;
        }
        let mut state = self.indexer.state.write();
        let mut training = self.training.lock();
        for ((slot, object), length) in taken.iter().zip(compressed) {
            if let Some(length) = length {
                state.record_compression(*slot, object, length);
                observe(&mut training, object.json_length(), length);
            }
        }
        true
    }

    /// Removes the next objects from the queue without compressing them.
    fn drain_queue(&self) {
        let mut state = self.indexer.state.write();
        for _ in 0..SLICE {
            if state.compression_queue.pop(MIN_AGE).is_none() {
                break;
            }
        }
        let is_idle = state.compression_queue.is_empty();
        self.is_idle.store(is_idle, Ordering::Relaxed);
    }

    /// Frees the memory that only compression needs, when all work is done.
    fn release_memory(&self, dictionary: &Dictionary) {
        self.indexer.state.write().compression_queue.shrink();
        self.is_idle.store(true, Ordering::Relaxed);
        dictionary.release_contexts();
        Labels::release_unused();
        self.record_dictionaries();
    }
}

#[cfg(test)]
mod tests;

//! Keeps a cache small: compresses what nobody has replaced for a while.
//!
//! It has no task and reads no clock: the informer calls [`Sweeper::tick`] at times, and [`Sweeper::sweep`] for one small slice of work
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
pub(crate) struct Sweeper {
    indexer: Indexer,
    /// Beyond this many bytes of plain text nothing is left alone.
    hot_bytes: usize,
    training: Mutex<Training>,
    /// Nothing is to be done until something is written.
    is_idle: AtomicBool,
}

// === impl Sweeper ===

impl Sweeper {
    pub(crate) fn new(indexer: Indexer, hot_bytes: usize) -> Self {
        Self { indexer, hot_bytes, training: Mutex::default(), is_idle: AtomicBool::new(true) }
    }

    /// Takes an object that a list brings: returns the cached one if it is its equal, else this one, compressed if that can be.
    pub(crate) fn arrived(&self, object: Object) -> Object {
        let cached = self.indexer.get(object.key());
        if let Some(cached) = cached.filter(|cached| cached.is_equal_version_of(&object)) {
            return cached;
        }
        self.training.lock().arrived(&object);
        object
    }

    /// Notes that something was written; answers whether nothing was to be done before.
    pub(crate) fn awake(&self) -> bool {
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
        self.indexer.state.write().hot.tick();
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
    pub(crate) fn sweep(&self) -> bool {
        if self.indexer.state.read().may_file_again() && self.indexer.file_again() {
            return true;
        }
        if self.training.lock().does_worse() {
            // Before more is compressed, and all of it again.
            self.learn();
        }
        let Some(dictionary) = self.training.lock().dictionary() else {
            // There is too little to learn from: it stays as it is.
            self.let_go();
            return false;
        };
        if self.compress_hot(&dictionary) || self.compress_anew(&dictionary) {
            return true;
        }
        if self.indexer.state.read().hot.is_empty() {
            self.rest(&dictionary);
        }
        false
    }

    /// Compresses what has been left alone for long enough.
    fn compress_hot(&self, dictionary: &Arc<Dictionary>) -> bool {
        let mut taken = Vec::with_capacity(SLICE);
        {
            let mut state = self.indexer.state.write();
            let age = if state.memory.plain > self.hot_bytes { 0 } else { AGE };
            let mut bytes = 0;
            while taken.len() < SLICE && bytes < SLICE_BYTES {
                let Some(slot) = state.hot.take(age) else { break };
                if let Some(object) = state.slots().get(slot) {
                    bytes += object.json_length();
                    taken.push((slot, object.clone()));
                }
            }
        }
        // It may be compressed already, though nobody has counted it.
        let compress = |(_, object): &(Slot, Object)| {
            if !object.is_cold_with(dictionary) {
                object.compress_anew(dictionary);
            }
            object.cold_length()
        };
        let compressed = taken.iter().map(compress).collect();
        self.note(&taken, compressed, Training::note)
    }

    /// Compresses with the new dictionary what is compressed with an older one.
    fn compress_anew(&self, dictionary: &Arc<Dictionary>) -> bool {
        let Some(from) = self.training.lock().rework else { return false };
        let (taken, next) = self.indexer.state.read().cold_after(from, SLICE);
        let anew = |(_, object): &(Slot, Object)| {
            if object.is_cold_with(dictionary) { None } else { object.compress_anew(dictionary) }
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
                state.became_cold(*slot, object, length);
                judge(&mut training, object.json_length(), length);
            }
        }
        true
    }

    /// Looks at nothing any more that is too little to learn from.
    fn let_go(&self) {
        let mut state = self.indexer.state.write();
        for _ in 0..SLICE {
            if state.hot.take(AGE).is_none() {
                break;
            }
        }
        let is_idle = state.hot.is_empty();
        self.is_idle.store(is_idle, Ordering::Relaxed);
    }

    /// Everything is done: frees what only doing it needed.
    fn rest(&self, dictionary: &Dictionary) {
        self.indexer.state.write().hot.shrink();
        self.is_idle.store(true, Ordering::Relaxed);
        dictionary.rest();
        Labels::sweep();
        let dictionaries = self.training.lock().size();
        self.indexer.state.write().memory.dictionaries = dictionaries;
    }
}

#[cfg(test)]
mod tests;

//! When a dictionary is learned, and from what.

use std::sync::{Arc, Weak};

use crate::indexer::slots::Slot;
use crate::indexer::{Memory, View};
use crate::object::{Dictionary, Json, Object};

/// Before so many objects have arrived nothing is learned from a list that goes on.
const EARLY: usize = 500;

/// Nor before so many bytes.
const EARLY_BYTES: usize = 256 << 10;

/// From how many of the early ones to learn: the list needs it at once, and most of their kinds are yet to come.
const EARLY_SAMPLES: usize = 100;

/// The least that a cache has to hold to be learned from.
const MIN_OBJECTS: usize = 64;

/// From how many objects to learn.
const SAMPLES: usize = 200;

/// On how many objects a new dictionary is tried.
const TRIALS: usize = 50;

/// A dictionary is looked at again once there are so many times more objects.
const GROWTH: usize = 4;

/// A new dictionary is adopted if what it makes is smaller than this many hundredths of what there is.
const WORTHWHILE: usize = 92;

/// Over so many bytes of text it is seen how well the dictionary does.
const WATCHED: usize = 4 << 20;

/// What is compressed has changed when it comes out so many times larger, for its length, than it did at first.
const WORSE: f64 = 1.1;

/// What has been learned, and what is to be.
#[derive(Default)]
pub(super) struct Training {
    dictionary: Option<Arc<Dictionary>>,
    /// Dictionaries that something may still be compressed with.
    older: Vec<Weak<Dictionary>>,
    /// What has arrived before anything was learned.
    early: Vec<Object>,
    early_bytes: usize,
    /// How many objects there were when something was learned.
    learned_of: usize,
    /// From which slot on objects are to be compressed with the new dictionary.
    pub(super) rework: Option<Slot>,
    /// How long texts were that were compressed lately, and what became of them.
    recent: (usize, usize),
    /// How much smaller the first ones became after something was learned.
    first: Option<f64>,
    /// Texts became as small then, and do not any more.
    does_worse: bool,
}

// === impl Training ===

impl Training {
    pub(super) fn dictionary(&self) -> Option<Arc<Dictionary>> {
        self.dictionary.clone()
    }

    /// Takes an object that a list brings; compresses it if it can.
    pub(super) fn arrived(&mut self, object: &Object) {
        if let Some(dictionary) = &self.dictionary {
            object.compress(dictionary);
            return;
        }
        self.early_bytes += object.json_length();
        self.early.push(object.clone());
        if self.early.len() < EARLY || self.early_bytes < EARLY_BYTES {
            return;
        }
        let early = std::mem::take(&mut self.early);
        self.early_bytes = 0;
        if let Some(dictionary) = Dictionary::train(&samples(early.iter(), early.len(), EARLY_SAMPLES)) {
            let dictionary = Arc::new(dictionary);
            for object in &early {
                object.compress(&dictionary);
            }
            self.adopt(dictionary, early.len());
        }
    }

    /// Notes how well the dictionary did.
    pub(super) fn note(&mut self, plain: usize, cold: usize) {
        self.recent.0 += plain;
        self.recent.1 += cold;
        if self.recent.0 >= WATCHED {
            let (plain, cold) = std::mem::take(&mut self.recent);
            let ratio = cold as f64 / plain as f64;
            self.does_worse |= ratio > WORSE * *self.first.get_or_insert(ratio);
        }
    }

    /// Whether what is compressed has changed since something was learned.
    pub(super) fn does_worse(&self) -> bool {
        self.does_worse
    }

    /// Learns from what is cached, if there is reason to.
    pub(super) fn learn(&mut self, view: &View, memory: &Memory) {
        // The list is over, or has failed.
        self.early = Vec::new();
        self.early_bytes = 0;
        self.older.retain(|older| older.strong_count() > 0);
        if memory.objects == 0 {
            *self = Self { older: std::mem::take(&mut self.older), ..Self::default() };
            return;
        }
        let is_enough = memory.objects >= MIN_OBJECTS && memory.text >= EARLY_BYTES;
        let is_due = match &self.dictionary {
            None => memory.objects >= self.learned_of + self.learned_of / 4,
            Some(_) => memory.objects >= self.learned_of * GROWTH || self.does_worse,
        };
        if !is_enough || !is_due {
            return;
        }
        let objects = || view.objects(&crate::Namespaces::All);
        let learned = Dictionary::train(&samples(objects(), memory.objects, SAMPLES)).map(Arc::new);
        self.learned_of = memory.objects;
        self.forget_results();
        let Some(learned) = learned else { return };
        if self.dictionary.is_none() || is_worthwhile(&learned, objects(), memory.objects) {
            self.adopt(learned, memory.objects);
            self.rework = Some(0);
        }
    }

    /// Returns how many bytes the dictionaries take.
    pub(super) fn size(&self) -> usize {
        let older = self.older.iter().filter_map(Weak::upgrade).map(|older| older.size()).sum::<usize>();
        self.dictionary.as_ref().map_or(0, |dictionary| dictionary.size()) + older
    }

    fn adopt(&mut self, dictionary: Arc<Dictionary>, n_objects: usize) {
        if let Some(older) = self.dictionary.replace(dictionary) {
            older.rest();
            self.older.push(Arc::downgrade(&older));
        }
        self.learned_of = n_objects;
        self.forget_results();
    }

    fn forget_results(&mut self) {
        self.recent = (0, 0);
        self.first = None;
        self.does_worse = false;
    }
}

/// Returns the texts of objects evenly spread over all.
fn samples<'o>(objects: impl Iterator<Item = &'o Object>, n_objects: usize, wanted: usize) -> Vec<Json> {
    objects.step_by(n_objects.div_ceil(wanted).max(1)).map(Object::json).collect()
}

/// Whether the dictionary does better than those that the objects are compressed with.
fn is_worthwhile<'o>(
    dictionary: &Arc<Dictionary>,
    objects: impl Iterator<Item = &'o Object>,
    n_objects: usize,
) -> bool {
    let (mut now, mut then) = (0, 0);
    // Not those that it was learned from.
    for object in objects.skip(1).step_by(n_objects.div_ceil(TRIALS).max(1)) {
        if let Some(length) = object.cold_length() {
            now += length;
            then += dictionary.length_of(&object.json()).unwrap_or(length);
        }
    }
    then * 100 < now * WORTHWHILE
}

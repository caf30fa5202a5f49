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

/// Over so many bytes of text it is seen how well the dictionary does; over twice as many after each time that nothing better could be learned.
const WATCHED: usize = 4 << 20;

/// What is compressed has changed when it comes out so many times larger, for its length, than was to be expected.
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
    /// How long texts were that were compressed since they changed, and what became of them, in a window of `watched` bytes.
    recent: (usize, usize),
    watched: usize,
    /// How long all of them were together since something was learned.
    changed: usize,
    /// What part of its length a text was expected to come to when something was learned; or came to first.
    expected: Option<f64>,
    /// What part it came to lately, if that is more.
    worse: Option<f64>,
}

/// What a dictionary would make of some objects.
#[derive(Default)]
struct Trial {
    plain: usize,
    cold: usize,
    /// Of those that are compressed: what they take now, and what they would take.
    now: usize,
    then: usize,
}

// === impl Training ===

impl Training {
    pub(super) fn dictionary(&self) -> Option<Arc<Dictionary>> {
        self.dictionary.clone()
    }

    /// Takes an object that a list brings; compresses it if it can.
    pub(super) fn compress_listed(&mut self, object: &Object) {
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

    /// Notes how well the dictionary did on what has changed.
    pub(super) fn note(&mut self, plain: usize, cold: usize) {
        self.changed += plain;
        self.recent.0 += plain;
        self.recent.1 += cold;
        if self.recent.0 >= self.watched.max(WATCHED) {
            let (plain, cold) = std::mem::take(&mut self.recent);
            let ratio = cold as f64 / plain as f64;
            let is_worse = ratio > WORSE * *self.expected.get_or_insert(ratio);
            self.worse = is_worse.then_some(ratio);
        }
    }

    /// Whether what is compressed has changed since something was learned. While everything is being compressed anew that cannot be said:
    /// most of it is still as it was.
    pub(super) fn does_worse(&self) -> bool {
        self.worse.is_some() && self.rework.is_none()
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
            Some(_) => memory.objects >= self.learned_of * GROWTH || self.does_worse(),
        };
        if !is_enough || !is_due {
            self.worse = self.worse.filter(|_| is_enough);
            return;
        }
        let objects = || view.objects(&crate::namespaces::Namespaces::All);
        let learned = Dictionary::train(&samples(objects(), memory.objects, SAMPLES)).map(Arc::new);
        self.learned_of = memory.objects;
        let Some(learned) = learned else { return self.learned_nothing(memory) };
        let trial = Trial::of(&learned, objects(), memory.objects);
        if self.dictionary.is_none() || trial.is_worthwhile() {
            self.adopt(learned, memory.objects);
            self.expected = trial.ratio();
            self.rework = Some(0);
        } else {
            self.learned_nothing(memory);
        }
    }

    /// Nothing better can be learned. Maybe it can once more has changed; once all has, this is what is to be expected.
    fn learned_nothing(&mut self, memory: &Memory) {
        let Some(ratio) = self.worse.take() else { return };
        if self.changed >= memory.text {
            (self.expected, self.changed, self.watched) = (Some(ratio), 0, WATCHED);
        } else {
            self.watched = self.watched.max(WATCHED).saturating_mul(2);
        }
    }

    /// Returns how many bytes the dictionaries take.
    pub(super) fn size(&self) -> usize {
        let older = self.older.iter().filter_map(Weak::upgrade).map(|older| older.size()).sum::<usize>();
        self.dictionary.as_ref().map_or(0, |dictionary| dictionary.size()) + older
    }

    fn adopt(&mut self, dictionary: Arc<Dictionary>, n_objects: usize) {
        if let Some(older) = self.dictionary.replace(dictionary) {
            older.release_contexts();
            self.older.push(Arc::downgrade(&older));
        }
        self.learned_of = n_objects;
        self.recent = (0, 0);
        (self.watched, self.changed) = (WATCHED, 0);
        self.expected = None;
        self.worse = None;
    }
}

/// Returns the texts of objects evenly spread over all.
fn samples<'o>(objects: impl Iterator<Item = &'o Object>, n_objects: usize, wanted: usize) -> Vec<Json> {
    objects.step_by(n_objects.div_ceil(wanted).max(1)).map(Object::json).collect()
}

// === impl Trial ===

impl Trial {
    /// Tries a dictionary on some of the objects.
    fn of<'o>(
        dictionary: &Arc<Dictionary>,
        objects: impl Iterator<Item = &'o Object>,
        n_objects: usize,
    ) -> Self {
        let mut trial = Self::default();
        // Not those that it was learned from.
        for object in objects.skip(1).step_by(n_objects.div_ceil(TRIALS).max(1)) {
            let Some(length) = object.length_with(dictionary) else { continue };
            trial.plain += object.json_length();
            trial.cold += length;
            if let Some(now) = object.cold_length() {
                trial.now += now;
                trial.then += length;
            }
        }
        trial
    }

    /// Whether it does better than what the objects are compressed with.
    fn is_worthwhile(&self) -> bool {
        self.then * 100 < self.now * WORTHWHILE
    }

    /// Returns what part of its length a text comes to.
    fn ratio(&self) -> Option<f64> {
        (self.plain > 0).then(|| self.cold as f64 / self.plain as f64)
    }
}

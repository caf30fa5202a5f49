//! Decides when a dictionary is trained, and from which objects.

use std::sync::{Arc, Weak};

use crate::indexer::slots::Slot;
use crate::indexer::{Memory, View};
use crate::object::{Dictionary, Json, Object};

/// While a first list arrives, a dictionary is trained after this many objects.
const EARLY: usize = 500;

/// The least text from which a dictionary is trained.
const EARLY_BYTES: usize = 256 << 10;

/// The samples for the dictionary of a first list. They are few, since a better dictionary follows after the
/// list.
const EARLY_SAMPLES: usize = 100;

/// The least objects from which a dictionary is trained.
const MIN_OBJECTS: usize = 64;

/// The samples for a dictionary.
const SAMPLES: usize = 200;

/// The objects on which a new dictionary is tried.
const TRIALS: usize = 50;

/// A new dictionary is trained when the cache has this many times more objects.
const GROWTH: usize = 4;

/// A new dictionary is adopted if its output is smaller than this percentage of the current one's.
const ADOPT_BELOW_PERCENT: usize = 92;

/// The text over which the compression ratio is measured. It doubles each time that training brings no better
/// dictionary.
const WINDOW: usize = 4 << 20;

/// The objects have changed when the compression ratio is this many times the expected one.
const WORSE: f64 = 1.1;

/// The current dictionary, and how well it compresses.
#[derive(Default)]
pub(super) struct Training {
    dictionary: Option<Arc<Dictionary>>,
    /// Earlier dictionaries that some objects may still be compressed with.
    older: Vec<Weak<Dictionary>>,
    /// The listed objects before the first dictionary.
    early: Vec<Object>,
    /// The length of their texts.
    early_bytes: usize,
    /// The number of cached objects at the last training.
    trained_at: usize,
    /// The slot from which on cold objects are to be recompressed with the current dictionary.
    pub(super) recompress_from: Option<Slot>,
    /// The length before and after compression of the changed texts in the current window.
    recent: (usize, usize),
    /// The length of a window.
    window: usize,
    /// The length of all texts that changed since the last adoption of a dictionary or expected ratio.
    changed: usize,
    /// The expected ratio: that of the trial of the dictionary, or of the first window.
    expected: Option<f64>,
    /// The ratio of the last window, if it is worse than expected.
    worse: Option<f64>,
}

/// A dictionary that is to be trained. Training and trial take up to a tenth of a second.
pub(crate) struct DueTraining {
    view: View,
    memory: Memory,
}

/// A dictionary that was trained, if there is one, and how it does.
pub(crate) struct Trained {
    dictionary: Option<(Arc<Dictionary>, Trial)>,
    /// Of the cache when the training was due.
    memory: Memory,
}

/// The result of compressing some objects with a new dictionary.
#[derive(Default)]
struct Trial {
    /// The length of all tried texts.
    plain: usize,
    /// Their length with the new dictionary.
    compressed: usize,
    /// The current length of the cold texts among them.
    cold_now: usize,
    /// The length of the same texts with the new dictionary.
    cold_then: usize,
}

// === impl Training ===

impl Training {
    pub(super) fn dictionary(&self) -> Option<Arc<Dictionary>> {
        self.dictionary.clone()
    }

    /// Compresses an object from a list, at the latest when enough objects for a dictionary have arrived.
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

    /// Records the length of a changed text before and after compression.
    pub(super) fn record_compression(&mut self, plain: usize, compressed: usize) {
        self.changed += plain;
        self.recent.0 += plain;
        self.recent.1 += compressed;
        if self.recent.0 >= self.window.max(WINDOW) {
            let (plain, compressed) = std::mem::take(&mut self.recent);
            let ratio = compressed as f64 / plain as f64;
            let is_worse = ratio > WORSE * *self.expected.get_or_insert(ratio);
            self.worse = is_worse.then_some(ratio);
        }
    }

    /// Whether the dictionary compresses worse than expected. This is not known while objects are
    /// recompressed, since most of them did not change.
    pub(super) fn compresses_worse(&self) -> bool {
        self.worse.is_some() && self.recompress_from.is_none()
    }

    /// Returns whether a dictionary is to be trained from the cached objects.
    pub(super) fn is_due(&mut self, memory: &Memory) -> bool {
        // No first list is arriving any more.
        self.early = Vec::new();
        self.early_bytes = 0;
        self.older.retain(|older| older.strong_count() > 0);
        if memory.objects == 0 {
            *self = Self { older: std::mem::take(&mut self.older), ..Self::default() };
            return false;
        }
        let is_enough = memory.objects >= MIN_OBJECTS && memory.text >= EARLY_BYTES;
        let is_due = match &self.dictionary {
            None => memory.objects >= self.trained_at + self.trained_at / 4,
            Some(_) => memory.objects >= self.trained_at * GROWTH || self.compresses_worse(),
        };
        if !is_enough || !is_due {
            self.worse = self.worse.filter(|_| is_enough);
        }
        is_enough && is_due
    }

    /// Adopts a dictionary if it is better.
    pub(super) fn conclude(&mut self, trained: Trained) {
        let Trained { dictionary, memory } = trained;
        self.trained_at = memory.objects;
        match dictionary {
            Some((dictionary, trial)) if self.dictionary.is_none() || trial.is_better() => {
                self.adopt(dictionary, memory.objects);
                self.expected = trial.ratio();
                self.recompress_from = Some(0);
            }
            _ => self.keep_dictionary(&memory),
        }
    }

    /// Keeps the dictionary because training brought no better one.
    ///
    /// Training is tried again after a longer window. Once all objects have changed, the current ratio
    /// becomes the expected one.
    fn keep_dictionary(&mut self, memory: &Memory) {
        let Some(ratio) = self.worse.take() else { return };
        if self.changed >= memory.text {
            (self.expected, self.changed, self.window) = (Some(ratio), 0, WINDOW);
        } else {
            self.window = self.window.max(WINDOW).saturating_mul(2);
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
        self.trained_at = n_objects;
        self.recent = (0, 0);
        (self.window, self.changed) = (WINDOW, 0);
        self.expected = None;
        self.worse = None;
    }
}

/// Returns the texts of `wanted` objects, evenly spread over all.
fn samples<'o>(objects: impl Iterator<Item = &'o Object>, n_objects: usize, wanted: usize) -> Vec<Json> {
    objects.step_by(n_objects.div_ceil(wanted).max(1)).map(Object::json).collect()
}

// === impl DueTraining ===

impl DueTraining {
    pub(super) fn new(view: View, memory: Memory) -> Self {
        Self { view, memory }
    }

    /// Trains a dictionary, and tries it. Needs no lock.
    pub(crate) fn train(self) -> Trained {
        let Self { view, memory } = self;
        let objects = || view.objects(&crate::namespaces::Namespaces::All);
        let trained = Dictionary::train(&samples(objects(), memory.objects, SAMPLES)).map(Arc::new);
        let tried = |dictionary| {
            let trial = Trial::of(&dictionary, objects(), memory.objects);
            (dictionary, trial)
        };
        Trained { dictionary: trained.map(tried), memory }
    }
}

// === impl Trial ===

impl Trial {
    /// Compresses some of the objects with a dictionary.
    fn of<'o>(
        dictionary: &Arc<Dictionary>,
        objects: impl Iterator<Item = &'o Object>,
        n_objects: usize,
    ) -> Self {
        let mut trial = Self::default();
        // Skip one, so that the objects differ from the samples.
        for object in objects.skip(1).step_by(n_objects.div_ceil(TRIALS).max(1)) {
            let Some(length) = object.compressed_length_with(dictionary) else { continue };
            trial.plain += object.json_length();
            trial.compressed += length;
            if let Some(now) = object.compressed_length() {
                trial.cold_now += now;
                trial.cold_then += length;
            }
        }
        trial
    }

    /// Whether the dictionary is clearly better than the one that the objects have now.
    fn is_better(&self) -> bool {
        self.cold_then * 100 < self.cold_now * ADOPT_BELOW_PERCENT
    }

    /// Returns the compression ratio: the compressed length divided by the length.
    fn ratio(&self) -> Option<f64> {
        (self.plain > 0).then(|| self.compressed as f64 / self.plain as f64)
    }
}

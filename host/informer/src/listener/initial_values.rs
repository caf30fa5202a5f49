//! The values of declared fields in initial adds, found once for listeners with equal fields.
//!
//! Plugins that start together receive the same objects as initial adds, in the same order. Most of these
//! objects are cold, and to decompress one takes longer than the rest of its delivery. So the values that
//! were found last are remembered until one of the listeners has synced. Short ones are kept in the informer
//! ([`Processor::keep_values`]), for the next change of the object and for initial adds that come later.

use std::sync::Arc;
#[cfg(test)]
use std::sync::atomic::{AtomicUsize, Ordering};

use oarlock_json::JsonPointer;
use parking_lot::Mutex;

use super::notification::{Delivery, Notification};
use super::values::{FieldValues, Selection};
use crate::object::{CopiedPointers, Object, StateValues};
use crate::processor::Processor;

/// How many objects are remembered.
const N_RECENT: usize = 256;

/// Longer objects are left to the consumer, which searches them in slices. In bytes of text.
const MAX_TEXT: usize = 16 << 10;

/// The declared fields that one or more listeners have in common.
#[derive(Debug)]
pub(crate) struct DeclaredFields {
    pointers: Vec<JsonPointer>,
    own: PlannedFields,
    /// Where the newest plan has these fields. None before the first plan that has them.
    planned: Mutex<Option<PlannedFields>>,
    /// By the hash of the key. Empty if no values are remembered.
    recent: Mutex<Vec<Option<(Object, FieldValues)>>>,
    /// How many texts were searched.
    #[cfg(test)]
    pub(super) n_searched: AtomicUsize,
}

/// Where the declared fields of a listener are among the pointers of a plan.
#[derive(Clone, Debug)]
pub(crate) struct PlannedFields {
    pub(super) copied: Arc<CopiedPointers>,
    pub(super) selection: Selection,
}

// === impl DeclaredFields ===

impl DeclaredFields {
    /// Returns none without pointers.
    pub(crate) fn new(pointers: &[JsonPointer]) -> Option<Self> {
        let indices: Vec<_> = (0..pointers.len() as u32).collect();
        (!pointers.is_empty()).then(|| Self {
            pointers: pointers.to_vec(),
            own: PlannedFields {
                copied: Arc::new(CopiedPointers::new(pointers)),
                selection: Selection::new(&indices),
            },
            planned: Mutex::default(),
            recent: Mutex::default(),
            #[cfg(test)]
            n_searched: AtomicUsize::new(0),
        })
    }

    pub(crate) fn are(&self, pointers: &[JsonPointer]) -> bool {
        self.pointers == pointers
    }

    pub(super) fn set_planned(&self, planned: Option<PlannedFields>) {
        *self.planned.lock() = planned;
    }

    /// Finds the values for an initial add.
    pub(super) fn find_for(self: &Arc<Self>, delivery: &mut Delivery, processor: &Processor) {
        if let Notification::Added { object, is_in_initial_list: true } = &delivery.notification
            && delivery.fields.new.is_none()
        {
            delivery.fields.new = self.values(object, processor);
        }
    }

    /// Forgets all values that are remembered.
    pub(super) fn forget(&self) {
        drop(std::mem::take(&mut *self.recent.lock()));
    }

    fn values(self: &Arc<Self>, object: &Object, processor: &Processor) -> Option<FieldValues> {
        let planned = self.planned.lock().clone();
        if let Some(planned) = &planned
            && let Some(kept) = processor.kept_values(object, planned.copied.number())
        {
            return Some(planned.select(kept));
        }
        let place = object.key().hash_value() as usize % N_RECENT;
        if let Some(Some((known, values))) = self.recent.lock().get(place)
            && known.is_same(object)
        {
            return Some(values.clone());
        }
        if object.json_length() > MAX_TEXT {
            return None;
        }
        #[cfg(test)]
        self.n_searched.fetch_add(1, Ordering::Relaxed);
        let found = planned.as_ref().and_then(|planned| {
            let values = planned.find(object)?;
            processor.keep_values(object, &values);
            Some(planned.select(values))
        });
        let values = match (found, &planned) {
            (Some(values), _) => values,
            // The values of the plan are too long, and it has no other pointers than these.
            (None, Some(planned)) if planned.copied.set().len() == self.own.copied.set().len() => {
                return None;
            }
            (None, _) => self.own.select(self.own.find(object)?),
        };
        // Nothing is remembered for one listener.
        if Arc::strong_count(self) > 1 {
            let mut recent = self.recent.lock();
            recent.resize(N_RECENT, None);
            let before = recent[place].replace((object.clone(), values.clone()));
            // Its text is freed after the lock.
            drop(recent);
            drop(before);
        }
        Some(values)
    }

    /// Returns how many values are remembered.
    #[cfg(test)]
    pub(super) fn n_recent(&self) -> usize {
        self.recent.lock().iter().flatten().count()
    }
}

// === impl PlannedFields ===

impl PlannedFields {
    /// Finds the values at all pointers in the object's text; none if they are long.
    fn find(&self, object: &Object) -> Option<StateValues> {
        let found = object.find(self.copied.set());
        let found = (0..self.copied.set().len()).map(|field| found.get(field));
        StateValues::copy(self.copied.number(), found, &mut String::new())
    }

    fn select(&self, values: StateValues) -> FieldValues {
        FieldValues::new(values, self.selection.clone())
    }
}

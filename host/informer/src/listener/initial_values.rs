//! The values of declared fields in initial adds, found once for listeners with equal fields.
//!
//! Plugins that start together receive the same objects as initial adds, in the same order. Most of these
//! objects are cold, and to decompress one takes longer than the rest of its delivery. So the values that
//! were found last are remembered until one of the listeners has synced.

use std::sync::Arc;

use oarlock_json::JsonPointer;
use parking_lot::Mutex;

use super::notification::{Delivery, Notification};
use super::values::{FieldValues, Selection};
use crate::object::{CopiedPointers, Object, StateValues};

/// How many objects are remembered.
const N_RECENT: usize = 256;

/// Longer objects are left to the consumer, which searches them in slices. In bytes of text.
const MAX_TEXT: usize = 16 << 10;

/// The declared fields that one or more listeners have in common.
#[derive(Debug)]
pub(crate) struct DeclaredFields {
    pointers: Vec<JsonPointer>,
    copied: CopiedPointers,
    selection: Selection,
    /// By the hash of the key. Empty if no values are remembered.
    recent: Mutex<Vec<Option<(Object, StateValues)>>>,
}

// === impl DeclaredFields ===

impl DeclaredFields {
    /// Returns none without pointers.
    pub(crate) fn new(pointers: &[JsonPointer]) -> Option<Self> {
        let indices: Vec<_> = (0..pointers.len() as u32).collect();
        (!pointers.is_empty()).then(|| Self {
            pointers: pointers.to_vec(),
            copied: CopiedPointers::new(pointers),
            selection: Selection::new(&indices),
            recent: Mutex::default(),
        })
    }

    pub(crate) fn are(&self, pointers: &[JsonPointer]) -> bool {
        self.pointers == pointers
    }

    /// Finds the values for an initial add.
    pub(super) fn find_for(self: &Arc<Self>, delivery: &mut Delivery) {
        if let Notification::Added { object, is_in_initial_list: true } = &delivery.notification
            && delivery.fields.new.is_none()
        {
            delivery.fields.new =
                self.values(object).map(|values| FieldValues::new(values, self.selection.clone()));
        }
    }

    /// Forgets all values.
    pub(super) fn forget(&self) {
        drop(std::mem::take(&mut *self.recent.lock()));
    }

    fn values(self: &Arc<Self>, object: &Object) -> Option<StateValues> {
        let place = object.key().hash_value() as usize % N_RECENT;
        if let Some(Some((known, values))) = self.recent.lock().get(place)
            && known.is_same(object)
        {
            return Some(values.clone());
        }
        if object.json_length() > MAX_TEXT {
            return None;
        }
        let found = object.find(self.copied.set());
        let found = (0..self.copied.set().len()).map(|field| found.get(field));
        let values = StateValues::copy(self.copied.number(), found, &mut String::new())?;
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

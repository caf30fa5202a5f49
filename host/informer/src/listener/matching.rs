//! Checks a change against the filters of all listeners of an informer at once.
//!
//! A [`MatchPlan`] merges equal selectors, conditions and declared fields of several listeners, and all
//! pointers into one set. So a [`ChangeCheck`] walks over the new text once, however many listeners there
//! are, or not at all if the decoder has copied its values. It copies short values, for the notifications and
//! for the next change. So it reads the old text only if its values were not kept, and otherwise compares the
//! copies.
//!
//! **Slices.** A text may be long and the listeners many, so the work is done in slices
//! ([`ChangeCheck::advance`]), without the lock that registrations and snapshots take.

mod check;

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;

use oarlock_json::JsonPointer;
use oarlock_label_selector::LabelSelector;

use crate::selector::{FieldCondition, FieldTest};

use super::filter::Filter;
use super::initial_values::PlannedFields;
use super::values::Selection;
use crate::object::{CopiedPointers, MAX_POINTERS};
pub(crate) use check::ChangeCheck;

/// The filters of several listeners, merged. A registration or removal needs a new plan.
#[derive(Debug)]
pub(crate) struct MatchPlan {
    /// By listener, in the order given.
    listeners: Box<[Planned]>,
    interests: Box<[Interest]>,
    selectors: Box<[LabelSelector]>,
    conditions: Box<[Condition]>,
    /// The pointers of all conditions and declared fields, sorted and without duplicates. Values are numbered
    /// in this order.
    pointers: Box<[JsonPointer]>,
    /// The same pointers, for a walk and for the decoder.
    copied: Arc<CopiedPointers>,
    /// By pointer: the first pointer after those below it.
    ends: Box<[u32]>,
}

/// A listener in a plan.
#[derive(Debug)]
struct Planned {
    /// The index of its interest.
    interest: u32,
    /// Its declared fields, in its order.
    selection: Option<Selection>,
}

/// The filter that one or more listeners have in common.
#[derive(Debug)]
struct Interest {
    selector: Option<u32>,
    conditions: Box<[u32]>,
    /// The indices of the declared fields in `pointers`, sorted, without duplicates.
    fields: Box<[u32]>,
}

#[derive(Debug)]
struct Condition {
    condition: crate::selector::FieldCondition,
    /// Its index in `pointers`.
    pointer: u32,
}

/// Assigns consecutive numbers to values; equal values get the same number.
struct Numbering<T>(HashMap<T, u32>);

// === impl MatchPlan ===

impl MatchPlan {
    /// Merges the filters of several listeners.
    pub(super) fn new<'f>(filters: impl IntoIterator<Item = &'f Filter>) -> Self {
        let filters: Vec<_> = filters.into_iter().collect();
        let conditions = filters.iter().flat_map(|filter| &filter.conditions).map(FieldCondition::pointer);
        let declared = filters.iter().flat_map(|filter| &filter.fields);
        let mut pointers: Vec<_> = conditions.chain(declared).collect();
        pointers.sort_unstable();
        pointers.dedup();
        // Every pointer of a filter is among them.
        let index = |pointer: &JsonPointer| pointers.binary_search(&pointer).unwrap_or_default() as u32;
        let mut selectors = Numbering::default();
        let mut conditions = Numbering::<(u32, FieldTest)>::default();
        let mut distinct = Vec::new();
        let mut interests = Numbering::<(Option<u32>, Vec<u32>, Vec<u32>)>::default();
        let mut selections = HashMap::<Vec<u32>, Selection>::new();
        let mut listeners = Vec::new();
        for Filter { selector, conditions: own, fields, .. } in filters.iter().copied() {
            let selector = (!selector.is_everything()).then(|| selectors.number(selector.clone()));
            let mut numbers = Vec::with_capacity(own.len());
            for condition in own {
                let pointer = index(condition.pointer());
                let number = conditions.number((pointer, condition.test().clone()));
                if number as usize == distinct.len() {
                    distinct.push(Condition { condition: condition.clone(), pointer });
                }
                numbers.push(number);
            }
            numbers.sort_unstable();
            numbers.dedup();
            let mut fields: Vec<_> = fields.iter().map(index).collect();
            let selection = (!fields.is_empty()).then(|| {
                let selection = selections.entry(fields.clone());
                selection.or_insert_with(|| Selection::new(&fields)).clone()
            });
            fields.sort_unstable();
            fields.dedup();
            let interest = interests.number((selector, numbers, fields));
            listeners.push(Planned { interest, selection });
        }
        let interests = interests
            .in_order()
            .into_iter()
            .map(|(selector, conditions, fields)| Interest {
                selector,
                conditions: conditions.into(),
                fields: fields.into(),
            })
            .collect();
        let copied = CopiedPointers::new(pointers.iter().copied());
        let set = copied.set();
        let ends = (0..pointers.len())
            .map(|pointer| {
                let end = set.end(set.place(pointer));
                set.places().partition_point(|place| *place < end) as u32
            })
            .collect();
        Self {
            listeners: listeners.into(),
            interests,
            selectors: selectors.in_order().into(),
            conditions: distinct.into(),
            pointers: pointers.into_iter().cloned().collect(),
            copied: Arc::new(copied),
            ends,
        }
    }

    /// Returns whether every change concerns every listener, so that nothing needs to be checked.
    pub(crate) fn matches_everything(&self) -> bool {
        self.interests.iter().all(Interest::matches_everything)
    }

    /// Takes the pointers of the plan before, if they are the same, so that the values found for it are those
    /// of this plan as well.
    pub(crate) fn continue_from(&mut self, before: &Self) {
        if self.pointers == before.pointers {
            self.copied = before.copied.clone();
        }
    }

    /// Returns the number of the pointers.
    pub(crate) fn number(&self) -> u32 {
        self.copied.number()
    }

    /// Returns where the declared fields of a listener are among the pointers, if it declares some and the
    /// values are copied.
    pub(crate) fn planned_fields(&self, listener_idx: usize) -> Option<PlannedFields> {
        let selection = self.listeners[listener_idx].selection.clone().filter(|_| self.copies_values())?;
        Some(PlannedFields { copied: self.copied.clone(), selection })
    }

    /// Returns the pointers whose values the decoder is to copy.
    pub(crate) fn to_copy(&self) -> Option<Arc<CopiedPointers>> {
        Some(&self.copied).filter(|copied| copied.can_decode()).cloned()
    }

    /// Returns whether the values at the pointers are few enough to be copied.
    fn copies_values(&self) -> bool {
        (1..=MAX_POINTERS).contains(&self.pointers.len())
    }
}

// === impl Interest ===

impl Interest {
    fn matches_everything(&self) -> bool {
        self.selector.is_none() && self.conditions.is_empty() && self.fields.is_empty()
    }
}

// === impl Numbering ===

impl<T: Hash + Eq> Numbering<T> {
    fn number(&mut self, value: T) -> u32 {
        let next = self.0.len() as u32;
        *self.0.entry(value).or_insert(next)
    }

    fn in_order(self) -> Vec<T> {
        let mut values: Vec<_> = self.0.into_iter().collect();
        values.sort_unstable_by_key(|(_, number)| *number);
        values.into_iter().map(|(value, _)| value).collect()
    }
}

impl<T> Default for Numbering<T> {
    fn default() -> Self {
        Self(HashMap::new())
    }
}

//! Checks a change against the filters of all listeners of an informer at once.
//!
//! A [`MatchPlan`] merges equal selectors, conditions and declared fields of several listeners, and all
//! pointers into one set. So a [`ChangeCheck`] walks over each of the two texts of a change once, however
//! many listeners there are, and compares the values that it found. It copies nothing.
//!
//! **Slices.** A text may be long and the listeners many, so the work is done in slices
//! ([`ChangeCheck::advance`]), without the lock that registrations and snapshots take.

mod check;

use std::collections::HashMap;
use std::hash::Hash;

use oarlock_json::{JsonPointer, PointerSet};
use oarlock_label_selector::LabelSelector;

use crate::selector::FieldTest;

use super::filter::Filter;
pub(crate) use check::ChangeCheck;

/// The filters of several listeners, merged. A registration or removal needs a new plan.
#[derive(Debug)]
pub(crate) struct MatchPlan {
    /// By listener, in the order given: the index of its interest.
    listeners: Box<[u32]>,
    interests: Box<[Interest]>,
    selectors: Box<[LabelSelector]>,
    conditions: Box<[Condition]>,
    /// The pointers of the conditions, in their order.
    condition_pointers: PointerSet,
    /// The same, then the declared fields.
    pointers: PointerSet,
}

/// The filter that one or more listeners have in common.
#[derive(Debug)]
struct Interest {
    selector: Option<u32>,
    conditions: Box<[u32]>,
    /// The nodes of the declared fields in `pointers`, in the order of a walk, without duplicates.
    fields: Box<[u32]>,
}

#[derive(Debug)]
struct Condition {
    condition: crate::selector::FieldCondition,
    /// Its nodes in `condition_pointers` and in `pointers`.
    places: [u32; 2],
}

/// Assigns consecutive numbers to values; equal values get the same number.
struct Numbering<T>(HashMap<T, u32>);

// === impl MatchPlan ===

impl MatchPlan {
    /// Merges the filters of several listeners.
    pub(super) fn new<'f>(filters: impl IntoIterator<Item = &'f Filter>) -> Self {
        let mut selectors = Numbering::default();
        let mut conditions = Numbering::<(JsonPointer, FieldTest)>::default();
        let mut distinct = Vec::new();
        let mut interests = Numbering::<(Option<u32>, Vec<u32>, Vec<&JsonPointer>)>::default();
        let mut listeners = Vec::new();
        for Filter { selector, conditions: own, fields, .. } in filters {
            let selector = (!selector.is_everything()).then(|| selectors.number(selector.clone()));
            let mut numbers = Vec::with_capacity(own.len());
            for condition in own {
                let number = conditions.number((condition.pointer().clone(), condition.test().clone()));
                if number as usize == distinct.len() {
                    distinct.push(condition.clone());
                }
                numbers.push(number);
            }
            numbers.sort_unstable();
            numbers.dedup();
            let mut fields: Vec<_> = fields.iter().collect();
            fields.sort_unstable();
            fields.dedup();
            listeners.push(interests.number((selector, numbers, fields)));
        }
        let condition_pointers = PointerSet::new(distinct.iter().map(|condition| condition.pointer()));
        let interests = interests.in_order();
        let declared = interests.iter().flat_map(|(_, _, fields)| fields.iter().copied());
        let pointers = PointerSet::new(distinct.iter().map(|condition| condition.pointer()).chain(declared));
        let conditions: Box<[_]> = distinct
            .into_iter()
            .enumerate()
            .map(|(number, condition)| Condition {
                condition,
                places: [condition_pointers.place(number), pointers.place(number)],
            })
            .collect();
        let mut next = conditions.len();
        let interests = interests
            .into_iter()
            .map(|(selector, conditions, fields)| {
                let mut nodes: Vec<_> = (next..next + fields.len()).map(|n| pointers.place(n)).collect();
                next += fields.len();
                nodes.sort_unstable();
                Interest { selector, conditions: conditions.into(), fields: nodes.into() }
            })
            .collect();
        Self {
            listeners: listeners.into(),
            interests,
            selectors: selectors.in_order().into(),
            conditions,
            condition_pointers,
            pointers,
        }
    }

    /// Returns whether every change concerns every listener, so that nothing needs to be checked.
    pub(crate) fn matches_everything(&self) -> bool {
        self.interests.iter().all(Interest::matches_everything)
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

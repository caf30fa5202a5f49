//! What the listeners of one informer want to know of an object, taken together.
//!
//! Selectors, conditions and declared fields that several listeners have are one here, and all pointers are one set: a change costs one
//! walk over each of its two texts, however many listeners there are, and a comparison of what was found. Nothing is copied.
//!
//! **Slices.** A text may be long and the listeners many, so the work is done a slice at a time ([`Matching::advance`]), and
//! outside of the lock that registrations and snapshots wait for.

mod judging;

use std::collections::HashMap;
use std::hash::Hash;

use crate::selector::{FieldTest, LabelSelector};
use oarlock_json::{JsonPointer, PointerSet};

use super::filter::{Change, Filter, Verdict};
pub(crate) use judging::Matching;

/// What several listeners are interested in. It is made anew when one comes or goes.
#[derive(Debug)]
pub(crate) struct Plan {
    /// By listener, in the order given: the place of its interest.
    listeners: Box<[u32]>,
    interests: Box<[Interest]>,
    selectors: Box<[LabelSelector]>,
    conditions: Box<[Condition]>,
    /// The pointers of the conditions, in their order.
    condition_pointers: PointerSet,
    /// The same, then the declared fields.
    pointers: PointerSet,
}

/// What one or more listeners have in common.
#[derive(Debug)]
struct Interest {
    selector: Option<u32>,
    conditions: Box<[u32]>,
    /// The nodes of the declared fields in `pointers`, in the order of a walk, each once.
    fields: Box<[u32]>,
}

#[derive(Debug)]
struct Condition {
    condition: crate::selector::FieldCondition,
    /// Its nodes in `condition_pointers` and in `pointers`.
    places: [u32; 2],
}

/// Numbers things as they come, equal ones the same.
struct Numbers<T>(HashMap<T, u32>);

// === impl Plan ===

impl Plan {
    pub(super) fn new<'f>(filters: impl IntoIterator<Item = &'f Filter>) -> Self {
        let mut selectors = Numbers::default();
        let mut conditions = Numbers::<(JsonPointer, FieldTest)>::default();
        let mut distinct = Vec::new();
        let mut interests = Numbers::<(Option<u32>, Vec<u32>, Vec<&JsonPointer>)>::default();
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

    /// Whether every change is news to every listener, so that there is nothing to find out.
    pub(crate) fn is_trivial(&self) -> bool {
        self.interests.iter().all(Interest::is_trivial)
    }
}

// === impl Interest ===

impl Interest {
    fn is_trivial(&self) -> bool {
        self.selector.is_none() && self.conditions.is_empty() && self.fields.is_empty()
    }
}

// === impl Numbers ===

impl<T: Hash + Eq> Numbers<T> {
    fn number(&mut self, thing: T) -> u32 {
        let next = self.0.len() as u32;
        *self.0.entry(thing).or_insert(next)
    }

    fn in_order(self) -> Vec<T> {
        let mut things: Vec<_> = self.0.into_iter().collect();
        things.sort_unstable_by_key(|(_, number)| *number);
        things.into_iter().map(|(thing, _)| thing).collect()
    }
}

impl<T> Default for Numbers<T> {
    fn default() -> Self {
        Self(HashMap::new())
    }
}

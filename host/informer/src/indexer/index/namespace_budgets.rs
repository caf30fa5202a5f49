//! How much of an index each namespace uses, and what was left out of it.
//!
//! What one namespace uses must not be missing for another: each has a part of its own. Once all is used,
//! only a namespace that has less than an equal share of the whole gets more, so that what an index takes
//! stays bounded.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use super::super::slots::Slot;
use crate::namespaces::Namespaces;

/// An index has so many parts, of which one namespace may use one. Cluster-scoped objects may use all of
/// them: among these there are no others.
const PARTS: usize = 8;

/// What is charged for each value of each object, beside its text.
const FILING_CHARGE: usize = 32;

/// What the namespaces use of one index, and what was left out of them.
#[derive(Debug, Default)]
pub(super) struct NamespaceBudgets {
    /// By namespace; none that uses nothing.
    used: BTreeMap<Box<str>, usize>,
    used_together: usize,
    /// By namespace; none that is complete.
    left_out: BTreeMap<Box<str>, LeftOut>,
    /// Something became free since everything that waits was tried.
    has_changed: bool,
    /// The object that was tried last.
    tried: Option<(Box<str>, Slot)>,
}

/// What is missing of one namespace.
#[derive(Debug, Default)]
struct LeftOut {
    /// Objects that wait for room.
    waiting: BTreeSet<Slot>,
    /// How many objects have too many values.
    n_refused: usize,
}

/// Returns what is charged for an object that is filed under a value.
pub(super) fn charge_of(filed: &str) -> usize {
    filed.len() + FILING_CHARGE
}

// === impl NamespaceBudgets ===

impl NamespaceBudgets {
    /// Whether a namespace may use so many bytes more, of an index that may use `limit`.
    pub(super) fn has_room(&self, namespace: &str, needed: usize, limit: usize) -> bool {
        if needed == 0 {
            return true;
        }
        let used = self.used.get(namespace);
        let after = used.copied().unwrap_or(0) + needed;
        let part = if namespace.is_empty() { limit } else { limit / PARTS };
        let n_namespaces = self.used.len() + usize::from(used.is_none());
        after <= part && (self.used_together + needed <= limit || after <= limit / n_namespaces)
    }

    pub(super) fn take(&mut self, namespace: &str, charge: usize) {
        if charge > 0 {
            change(&mut self.used, namespace, |used| *used += charge);
            self.used_together += charge;
        }
    }

    pub(super) fn give_back(&mut self, namespace: &str, charge: usize) {
        let Some(used) = self.used.get_mut(namespace).filter(|_| charge > 0) else { return };
        *used -= charge;
        if *used == 0 {
            self.used.remove(namespace);
        }
        self.used_together -= charge;
        self.has_changed = !self.left_out.is_empty();
    }

    /// Notes that an object waits for room.
    pub(super) fn wait(&mut self, namespace: &str, slot: Slot) {
        change(&mut self.left_out, namespace, |it| {
            it.waiting.insert(slot);
        });
    }

    /// Notes that an object has too many values.
    pub(super) fn refuse(&mut self, namespace: &str) {
        change(&mut self.left_out, namespace, |it| it.n_refused += 1);
    }

    /// Forgets an object that was left out.
    pub(super) fn forget(&mut self, namespace: &str, slot: Slot, is_refused: bool) {
        let Some(left_out) = self.left_out.get_mut(namespace) else { return };
        if is_refused {
            left_out.n_refused -= 1;
        } else {
            left_out.waiting.remove(&slot);
        }
        if left_out.count() == 0 {
            self.left_out.remove(namespace);
        }
    }

    /// Returns one of these namespaces of which objects were left out, and how many.
    pub(super) fn incomplete(&self, namespaces: &Namespaces) -> Option<(&str, usize)> {
        let found = match namespaces {
            Namespaces::All => self.left_out.first_key_value(),
            Namespaces::Only(_) if self.left_out.is_empty() => None,
            Namespaces::Only(some) => some.iter().find_map(|it| self.left_out.get_key_value(it.as_str())),
        };
        found.map(|(namespace, left_out)| (&**namespace, left_out.count()))
    }

    /// Returns how many objects were left out, and of how many namespaces.
    pub(super) fn left_out(&self) -> (usize, usize) {
        (self.left_out.values().map(LeftOut::count).sum(), self.left_out.len())
    }

    /// Whether something that waits may have room by now.
    pub(super) fn may_have_room(&self) -> bool {
        self.has_changed
    }

    /// Returns the next one that waits in a namespace which is not full. At the end there is none until
    /// something becomes free.
    pub(super) fn next_to_try(&mut self, limit: usize) -> Option<Slot> {
        if !self.has_changed {
            return None;
        }
        let tried = self.tried.take();
        let from = tried.as_ref().map_or("", |(namespace, _)| namespace);
        for (namespace, left_out) in self.left_out.range::<str, _>((Bound::Included(from), Bound::Unbounded))
        {
            if !self.has_room(namespace, FILING_CHARGE, limit) {
                continue;
            }
            let after = match &tried {
                Some((last, slot)) if last == namespace => Bound::Excluded(*slot),
                _ => Bound::Unbounded,
            };
            if let Some(slot) = left_out.waiting.range((after, Bound::Unbounded)).next() {
                self.tried = Some((namespace.clone(), *slot));
                return Some(*slot);
            }
        }
        self.has_changed = false;
        None
    }
}

/// Changes what there is under a namespace.
fn change<T: Default>(map: &mut BTreeMap<Box<str>, T>, namespace: &str, change: impl FnOnce(&mut T)) {
    match map.get_mut(namespace) {
        Some(value) => change(value),
        None => change(map.entry(namespace.into()).or_default()),
    }
}

// === impl LeftOut ===

impl LeftOut {
    fn count(&self) -> usize {
        self.waiting.len() + self.n_refused
    }
}

//! How much of an index each namespace uses, and which objects were left out.
//!
//! Each namespace has a part of the index, so that one namespace cannot use up the index of another. When the
//! whole index is used, only a namespace that uses less than an equal share gets more. So the size of an
//! index is bounded.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use super::super::slots::Slot;
use crate::namespaces::Namespaces;

/// The number of parts of an index. One namespace may use one part. Cluster-scoped objects may use all parts:
/// they compete with no namespace.
const PARTS: usize = 8;

/// The charge for each value of each object, in addition to its length.
const FILING_CHARGE: usize = 32;

/// What the namespaces use of one index, and which of their objects were left out.
#[derive(Debug, Default)]
pub(super) struct NamespaceBudgets {
    /// The charge of each namespace that has one.
    used: BTreeMap<Box<str>, usize>,
    used_together: usize,
    /// The left-out objects of each namespace that has some.
    left_out: BTreeMap<Box<str>, LeftOut>,
    /// Whether something became free since all left-out objects were tried.
    may_have_room: bool,
    /// The left-out object that was tried last.
    last_tried: Option<(Box<str>, Slot)>,
}

/// The left-out objects of one namespace.
#[derive(Debug, Default)]
struct LeftOut {
    /// The objects that wait for room.
    waiting: BTreeSet<Slot>,
    /// The number of objects with too many values.
    n_too_large: usize,
}

/// Returns the charge for one object under a value.
pub(super) fn charge_of(filed: &str) -> usize {
    filed.len() + FILING_CHARGE
}

// === impl NamespaceBudgets ===

impl NamespaceBudgets {
    /// Whether a namespace may use `needed` bytes more of an index of `limit` bytes.
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

    pub(super) fn charge(&mut self, namespace: &str, charge: usize) {
        if charge > 0 {
            change(&mut self.used, namespace, |used| *used += charge);
            self.used_together += charge;
        }
    }

    pub(super) fn refund(&mut self, namespace: &str, charge: usize) {
        let Some(used) = self.used.get_mut(namespace).filter(|_| charge > 0) else { return };
        *used -= charge;
        if *used == 0 {
            self.used.remove(namespace);
        }
        self.used_together -= charge;
        self.may_have_room = !self.left_out.is_empty();
    }

    /// Records that an object waits for room.
    pub(super) fn add_without_room(&mut self, namespace: &str, slot: Slot) {
        change(&mut self.left_out, namespace, |it| {
            it.waiting.insert(slot);
        });
    }

    /// Records that an object has too many values.
    pub(super) fn add_too_large(&mut self, namespace: &str) {
        change(&mut self.left_out, namespace, |it| it.n_too_large += 1);
    }

    /// Removes the record of a left-out object.
    pub(super) fn remove_left_out(&mut self, namespace: &str, slot: Slot, is_too_large: bool) {
        let Some(left_out) = self.left_out.get_mut(namespace) else { return };
        if is_too_large {
            left_out.n_too_large -= 1;
        } else {
            left_out.waiting.remove(&slot);
        }
        if left_out.count() == 0 {
            self.left_out.remove(namespace);
        }
    }

    /// Returns one of these namespaces that has left-out objects, and how many.
    pub(super) fn incomplete(&self, namespaces: &Namespaces) -> Option<(&str, usize)> {
        let found = match namespaces {
            Namespaces::All => self.left_out.first_key_value(),
            Namespaces::Only(_) if self.left_out.is_empty() => None,
            Namespaces::Only(some) => some.iter().find_map(|it| self.left_out.get_key_value(it.as_str())),
        };
        found.map(|(namespace, left_out)| (&**namespace, left_out.count()))
    }

    /// Returns how many objects were left out, and how many namespaces they are in.
    pub(super) fn left_out(&self) -> (usize, usize) {
        (self.left_out.values().map(LeftOut::count).sum(), self.left_out.len())
    }

    /// Whether a waiting object may have room now.
    pub(super) fn may_have_room(&self) -> bool {
        self.may_have_room
    }

    /// Returns the next waiting object of a namespace that has room. After the last one it returns `None`
    /// until something becomes free.
    pub(super) fn next_to_try(&mut self, limit: usize) -> Option<Slot> {
        if !self.may_have_room {
            return None;
        }
        let tried = self.last_tried.take();
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
                self.last_tried = Some((namespace.clone(), *slot));
                return Some(*slot);
            }
        }
        self.may_have_room = false;
        None
    }
}

/// Changes the value of a namespace, which it allocates only if the namespace is new.
fn change<T: Default>(map: &mut BTreeMap<Box<str>, T>, namespace: &str, change: impl FnOnce(&mut T)) {
    match map.get_mut(namespace) {
        Some(value) => change(value),
        None => change(map.entry(namespace.into()).or_default()),
    }
}

// === impl LeftOut ===

impl LeftOut {
    fn count(&self) -> usize {
        self.waiting.len() + self.n_too_large
    }
}

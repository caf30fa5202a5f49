//! The values of an index by namespace, for readers who may not read all namespaces.
//!
//! What they are answered, and how long it takes, must not depend on objects that they may not read. So a
//! value is looked up in their namespaces only; who may read everything is answered from the postings over
//! all namespaces.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::{Bound, Range};
use std::sync::Arc;

use super::super::postings::Postings;
use super::super::slots::{Slot, Slots};
use super::{POSTING_COST, VALUE_COST};
use crate::names::ObjectKey;
use crate::namespaces::Namespaces;

type Values = BTreeMap<Arc<str>, Postings>;

/// The values by namespace. It is made a few slots at a time; what is written meanwhile is entered where that
/// has got to.
#[derive(Debug, Default)]
pub(super) struct ValuesByNamespace {
    by_namespace: BTreeMap<Box<str>, Values>,
    progress: Progress,
    /// How often a namespace's values were looked at.
    #[cfg(test)]
    pub(super) lookups: NamespaceLookups,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Progress {
    /// All slots before this one are entered.
    Before(Slot),
    Complete,
}

/// Where a walk over the values has got to.
#[derive(Clone, Debug)]
pub struct ValuesCursor {
    namespace: Box<str>,
    value: Option<Arc<str>>,
}

#[cfg(test)]
#[derive(Debug, Default)]
pub(super) struct NamespaceLookups(parking_lot::Mutex<BTreeMap<Box<str>, usize>>);

// === impl Progress ===

impl Default for Progress {
    fn default() -> Self {
        Self::Before(0)
    }
}

// === impl ValuesByNamespace ===

impl ValuesByNamespace {
    pub(super) fn is_complete(&self) -> bool {
        self.progress == Progress::Complete
    }

    /// Whether this slot is entered when it is filed.
    pub(super) fn has_reached(&self, slot: Slot) -> bool {
        match self.progress {
            Progress::Before(next) => slot < next,
            Progress::Complete => true,
        }
    }

    /// Returns the slots that are to be entered next; none when all are.
    pub(super) fn next_slots(&mut self, most: usize, n_filed: usize) -> Option<Range<Slot>> {
        let Progress::Before(next) = self.progress else { return None };
        let end = n_filed.min(next as usize + most) as Slot;
        self.progress = if end as usize >= n_filed { Progress::Complete } else { Progress::Before(end) };
        Some(next..end)
    }

    /// Enters a slot; returns about how many bytes more that takes.
    pub(super) fn insert(&mut self, value: &Arc<str>, slot: Slot, slots: &Slots) -> usize {
        let Some(key) = slots.key(slot) else { return 0 };
        let values = match self.by_namespace.get_mut(key.namespace()) {
            Some(values) => values,
            None => self.by_namespace.entry(key.namespace().into()).or_default(),
        };
        if let Some(postings) = values.get_mut(value) {
            postings.insert(slot, slots);
            return POSTING_COST;
        }
        values.insert(value.clone(), Postings::One(slot));
        VALUE_COST
    }

    /// Takes a slot out, if it was entered; returns about how many bytes less that takes.
    pub(super) fn remove(&mut self, value: &str, slot: Slot, slots: &Slots) -> usize {
        let Some(key) = slots.key(slot).filter(|_| self.has_reached(slot)) else { return 0 };
        let Some(values) = self.by_namespace.get_mut(key.namespace()) else { return 0 };
        let Some(postings) = values.get_mut(value) else { return 0 };
        if !postings.remove(slot, slots) {
            return POSTING_COST;
        }
        values.remove(value);
        if values.is_empty() {
            self.by_namespace.remove(key.namespace());
        }
        VALUE_COST
    }

    /// Takes everything out; returns it, to be dropped without the lock. An empty index is complete.
    pub(super) fn clear(&mut self) -> impl Sized + use<> {
        self.progress = Progress::Complete;
        std::mem::take(&mut self.by_namespace)
    }

    /// Returns the slots under a value in these namespaces after a key, in order.
    pub(super) fn within<'s>(
        &'s self,
        value: String,
        slots: &'s Slots,
        namespaces: &'s BTreeSet<String>,
        after: Option<&'s ObjectKey>,
    ) -> impl Iterator<Item = Slot> + 's {
        let from = after.map_or("", ObjectKey::namespace);
        let namespaces = namespaces.range::<str, _>((Bound::Included(from), Bound::Unbounded));
        let postings = namespaces.filter_map(move |namespace| self.values(namespace)?.get(&*value));
        postings.flat_map(move |postings| postings.within(slots, &Namespaces::All, after))
    }

    fn values(&self, namespace: &str) -> Option<&Values> {
        #[cfg(test)]
        self.lookups.count(namespace);
        self.by_namespace.get(namespace)
    }
}

/// Adds up to `most` values after a place to `found`: of the postings over all namespaces, or of the by_namespace
/// of some. Returns where to go on, none at the end.
pub(super) fn values_after(
    everywhere: &Values,
    by_namespace: Option<&ValuesByNamespace>,
    after: Option<&ValuesCursor>,
    most: usize,
    namespaces: &Namespaces,
    found: &mut BTreeSet<Arc<str>>,
) -> Option<ValuesCursor> {
    let mut left = most;
    let some = match namespaces {
        Namespaces::All => return take("", everywhere, after, &mut left, found),
        Namespaces::Only(some) => some,
    };
    let by_namespace = by_namespace?;
    let from = after.map_or("", |cursor| &cursor.namespace);
    for namespace in some.range::<str, _>((Bound::Included(from), Bound::Unbounded)) {
        // A namespace without values costs a look, too.
        left = left.saturating_sub(1);
        let after = after.filter(|cursor| *cursor.namespace == **namespace);
        if let Some(values) = by_namespace.values(namespace)
            && let Some(cursor) = take(namespace, values, after, &mut left, found)
        {
            return Some(cursor);
        }
        if left == 0 {
            // The next walk begins behind this namespace: nothing sorts between it and the next name.
            return Some(ValuesCursor { namespace: format!("{namespace}\0").into(), value: None });
        }
    }
    None
}

fn take(
    namespace: &str,
    values: &Values,
    after: Option<&ValuesCursor>,
    left: &mut usize,
    found: &mut BTreeSet<Arc<str>>,
) -> Option<ValuesCursor> {
    let start = after.and_then(|cursor| cursor.value.clone()).map_or(Bound::Unbounded, Bound::Excluded);
    for value in values.range((start, Bound::Unbounded)).map(|(value, _)| value) {
        found.insert(value.clone());
        *left = left.saturating_sub(1);
        if *left == 0 {
            return Some(ValuesCursor { namespace: namespace.into(), value: Some(value.clone()) });
        }
    }
    None
}

// === impl NamespaceLookups ===

#[cfg(test)]
impl NamespaceLookups {
    fn count(&self, namespace: &str) {
        *self.0.lock().entry(namespace.into()).or_default() += 1;
    }

    pub(super) fn take(&self) -> BTreeMap<Box<str>, usize> {
        std::mem::take(&mut self.0.lock())
    }
}

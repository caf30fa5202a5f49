//! The values of an index by namespace, for readers that may read some namespaces only.
//!
//! Neither the result of such a reader nor its duration may depend on objects that it may not read. So its
//! values are looked up in its namespaces only. Readers of all namespaces use the postings over all
//! namespaces.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::{Bound, Range};
use std::sync::Arc;

use super::super::postings::Postings;
use super::super::slots::{Slot, Slots};
use super::{POSTING_COST, VALUE_COST};
use crate::names::ObjectKey;
use crate::namespaces::Namespaces;

type Values = BTreeMap<Arc<str>, Postings>;

/// The values by namespace.
///
/// The existing objects are filed a few slots at a time. Meanwhile a written object is filed at once if its
/// slot was reached already.
#[derive(Debug, Default)]
pub(super) struct ValuesByNamespace {
    by_namespace: BTreeMap<Box<str>, Values>,
    progress: Progress,
    /// How often each namespace was looked up.
    #[cfg(test)]
    pub(super) lookups: NamespaceLookups,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Progress {
    /// All slots before this one are filed.
    Before(Slot),
    Complete,
}

/// A position in the values of an index.
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

    /// Whether a written object of this slot is filed at once.
    pub(super) fn has_reached(&self, slot: Slot) -> bool {
        match self.progress {
            Progress::Before(next) => slot < next,
            Progress::Complete => true,
        }
    }

    /// Returns the slots to file next. Returns `None` when all are filed.
    pub(super) fn next_slots(&mut self, max_slots: usize, n_slots: usize) -> Option<Range<Slot>> {
        let Progress::Before(next) = self.progress else { return None };
        let end = n_slots.min(next as usize + max_slots) as Slot;
        self.progress = if end as usize >= n_slots { Progress::Complete } else { Progress::Before(end) };
        Some(next..end)
    }

    /// Files a slot under a value. Returns about how many bytes that takes.
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

    /// Removes a slot from a value, if it was filed. Returns about how many bytes that frees.
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

    /// Removes everything. Returns it, so that the caller drops it after the lock. An empty index is
    /// complete.
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

/// Adds up to `max_values` values after the cursor to `found`: from the postings over all namespaces, or from
/// those of some namespaces. Returns the next cursor, `None` at the end.
pub(super) fn values_after(
    all_namespaces: &Values,
    by_namespace: Option<&ValuesByNamespace>,
    after: Option<&ValuesCursor>,
    max_values: usize,
    namespaces: &Namespaces,
    found: &mut BTreeSet<Arc<str>>,
) -> Option<ValuesCursor> {
    let mut left = max_values;
    let some = match namespaces {
        Namespaces::All => return take("", all_namespaces, after, &mut left, found),
        Namespaces::Only(some) => some,
    };
    let by_namespace = by_namespace?;
    let from = after.map_or("", |cursor| &cursor.namespace);
    for namespace in some.range::<str, _>((Bound::Included(from), Bound::Unbounded)) {
        // The lookup of a namespace without values counts, too.
        left = left.saturating_sub(1);
        let after = after.filter(|cursor| *cursor.namespace == **namespace);
        if let Some(values) = by_namespace.values(namespace)
            && let Some(cursor) = take(namespace, values, after, &mut left, found)
        {
            return Some(cursor);
        }
        if left == 0 {
            // The next call starts after this namespace: no name sorts between it and this cursor.
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

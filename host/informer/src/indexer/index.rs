//! One index: the objects under each value, and the values of each object.

mod by_namespace;
mod filed;
mod long_value;
mod namespace_budgets;
mod source;
mod values;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use self::by_namespace::ValuesByNamespace;
pub use self::by_namespace::ValuesCursor;
use self::filed::Filed;
pub(super) use self::long_value::{filed_as, is_short_form};
use self::namespace_budgets::{NamespaceBudgets, charge_of};
pub use self::source::{IndexError, IndexFunction, IndexSource};
pub(super) use self::values::{Filing, Values};
use super::postings::Postings;
use super::slots::{Slot, Slots};
use crate::names::ObjectKey;
use crate::namespaces::Namespaces;

/// The limits of an index.
///
/// An object beyond a limit is left out. Until it is filed or removed, reads of its namespace return
/// [`Error::Incomplete`](super::Error::Incomplete).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IndexLimits {
    /// The most values of one object.
    pub values_per_object: usize,
    /// The most bytes of all values. Each value of each object counts as its length plus 32 bytes.
    ///
    /// One namespace may use an eighth of the bytes; cluster-scoped objects may use all. When all bytes are
    /// used, only a namespace that uses less than an equal share gets more.
    pub bytes_per_index: usize,
}

/// The size of an index, and the number of objects that it lacks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IndexStatus {
    /// The number of values.
    pub values: usize,
    /// The number of objects that could not be filed, including the ones left out.
    pub failed: usize,
    /// The number of objects that were left out because of a limit. Reads of their namespaces fail.
    pub left_out: usize,
    /// The number of namespaces that have left-out objects.
    pub incomplete_namespaces: usize,
    /// About how many bytes the index takes.
    pub bytes: usize,
}

/// An index and its content.
#[derive(Debug)]
pub(super) struct Index {
    source: IndexSource,
    limits: IndexLimits,
    /// How many names share the index.
    pub(super) n_users: usize,
    /// The objects of each value, over all namespaces. No value is without objects.
    postings: BTreeMap<Arc<str>, Postings>,
    /// The same by namespace, for readers of some namespaces. Created when the first of them reads.
    by_namespace: Option<ValuesByNamespace>,
    /// By slot: what its object is filed under.
    filed: Vec<Filed>,
    /// The reasons of the first few failures.
    failures: BTreeMap<ObjectKey, IndexError>,
    n_failed: usize,
    /// What each namespace uses, and which objects were left out.
    budgets: NamespaceBudgets,
    /// About how many bytes values and postings take.
    bytes: usize,
}

/// About how many bytes a value takes in addition to its text.
const VALUE_COST: usize = 88;

/// About how many bytes each object of a value after the first takes.
const POSTING_COST: usize = 8;

/// The most failures whose reason is stored.
const MAX_FAILURES: usize = 1000;

// === impl IndexLimits ===

/// 256 values for each object, and 256 MiB.
impl Default for IndexLimits {
    fn default() -> Self {
        Self { values_per_object: 256, bytes_per_index: 256 << 20 }
    }
}

// === impl Index ===

impl Index {
    pub(super) fn new(source: IndexSource, limits: IndexLimits) -> Self {
        Self {
            source,
            limits,
            n_users: 1,
            postings: BTreeMap::new(),
            by_namespace: None,
            filed: Vec::new(),
            failures: BTreeMap::new(),
            n_failed: 0,
            budgets: NamespaceBudgets::default(),
            bytes: 0,
        }
    }

    pub(super) fn source(&self) -> &IndexSource {
        &self.source
    }

    /// Files the object of a slot in place of the slot's previous object. An object that cannot be filed is
    /// counted as a failure.
    pub(super) fn put(&mut self, slot: Slot, filing: Filing<'_>, slots: &Slots) {
        let values = match filing {
            Ok(values) => values,
            Err(error) => {
                self.remove(slot, slots);
                self.fail(slot, Filed::Failed, error, slots);
                return;
            }
        };
        if self.filed.get(slot as usize).unwrap_or(&Filed::Nothing).equals(&values) {
            return;
        }
        self.remove(slot, slots);
        if let Err((failed, error)) = self.check_limits(&values, slot, slots) {
            self.fail(slot, failed, error, slots);
            return;
        }
        let mut shared = values.iter().map(|value| self.file(&filed_as(value), slot, slots));
        let filed = match values.len() {
            0 => return,
            1 => shared.next().map_or(Filed::Nothing, Filed::One),
            _ => Filed::Many(shared.collect()),
        };
        self.bytes += filed.size();
        if let Some(key) = slots.key(slot) {
            self.budgets.charge(key.namespace(), filed.charge());
        }
        self.set(slot, filed);
    }

    /// Removes the object of a slot.
    pub(super) fn remove(&mut self, slot: Slot, slots: &Slots) {
        let Some(filed) = self.filed.get_mut(slot as usize).map(std::mem::take) else { return };
        self.bytes -= filed.size();
        if filed.is_failure() {
            self.n_failed -= 1;
            if let Some(key) = slots.key(slot) {
                self.failures.remove(key);
                self.budgets.remove_left_out(key.namespace(), slot, filed == Filed::TooManyValues);
            }
        }
        for value in filed.values() {
            if let Some(by_namespace) = &mut self.by_namespace {
                self.bytes -= by_namespace.remove(value, slot, slots);
            }
            let Some(postings) = self.postings.get_mut(value) else { continue };
            if postings.remove(slot, slots) {
                self.postings.remove(value);
                self.bytes -= value.len() + VALUE_COST;
            } else {
                self.bytes -= POSTING_COST;
            }
        }
        if let Some(key) = slots.key(slot) {
            self.budgets.refund(key.namespace(), filed.charge());
        }
    }

    /// Removes everything. Returns it, so that the caller drops it after the lock.
    pub(super) fn clear(&mut self) -> impl Sized + use<> {
        self.n_failed = 0;
        self.bytes = 0;
        let by_namespace = self.by_namespace.as_mut().map(ValuesByNamespace::clear);
        let filed = std::mem::take(&mut self.filed);
        let budgets = std::mem::take(&mut self.budgets);
        (filed, std::mem::take(&mut self.postings), std::mem::take(&mut self.failures), by_namespace, budgets)
    }

    /// Returns the objects of a value over all namespaces.
    pub(super) fn postings(&self, value: &str) -> Option<&Postings> {
        self.postings.get(&*filed_as(value))
    }

    /// Returns the slots under a value in these namespaces after a key, in order.
    ///
    /// The work depends on these namespaces only. Unless all are requested, [`Index::split`] must have
    /// completed.
    pub(super) fn within<'i>(
        &'i self,
        value: &str,
        slots: &'i Slots,
        namespaces: &'i Namespaces,
        after: Option<&'i ObjectKey>,
    ) -> Box<dyn Iterator<Item = Slot> + 'i> {
        match namespaces {
            Namespaces::All => match self.postings(value) {
                Some(postings) => Box::new(postings.within(slots, &Namespaces::All, after)),
                None => Box::new(std::iter::empty()),
            },
            Namespaces::Only(some) => match &self.by_namespace {
                Some(by_namespace) => {
                    Box::new(by_namespace.within(filed_as(value).into_owned(), slots, some, after))
                }
                None => Box::new(std::iter::empty()),
            },
        }
    }

    /// Files the next few slots by namespace. Returns whether all are filed.
    pub(super) fn split(&mut self, n_slots: usize, slots: &Slots) -> bool {
        let by_namespace = self.by_namespace.get_or_insert_default();
        let Some(next) = by_namespace.next_slots(n_slots, self.filed.len()) else { return true };
        for slot in next {
            for value in self.filed[slot as usize].values() {
                self.bytes += by_namespace.insert(value, slot, slots);
            }
        }
        by_namespace.is_complete()
    }

    /// Whether all slots are filed by namespace.
    pub(super) fn is_split(&self) -> bool {
        self.by_namespace.as_ref().is_some_and(ValuesByNamespace::is_complete)
    }

    /// Adds up to `limit` values of these namespaces after the cursor to `found`. Returns the next cursor,
    /// `None` at the end.
    pub(super) fn values_after(
        &self,
        after: Option<&ValuesCursor>,
        limit: usize,
        namespaces: &Namespaces,
        found: &mut BTreeSet<Arc<str>>,
    ) -> Option<ValuesCursor> {
        by_namespace::values_after(
            &self.postings,
            self.by_namespace.as_ref(),
            after,
            limit,
            namespaces,
            found,
        )
    }

    /// Returns one object that is filed under this value, in its stored form, in these namespaces.
    pub(super) fn any_slot(&self, filed: &str, slots: &Slots, namespaces: &Namespaces) -> Option<Slot> {
        match (namespaces, &self.by_namespace) {
            (Namespaces::All, _) => self.postings.get(filed)?.iter().next(),
            (Namespaces::Only(some), Some(by_namespace)) => {
                by_namespace.within(filed.to_owned(), slots, some, None).next()
            }
            (Namespaces::Only(_), None) => None,
        }
    }

    /// Returns how often readers looked up each namespace since the last call.
    #[cfg(test)]
    pub(super) fn take_lookups(&self) -> BTreeMap<Box<str>, usize> {
        self.by_namespace.as_ref().map(|by_namespace| by_namespace.lookups.take()).unwrap_or_default()
    }

    pub(super) fn failures(&self) -> &BTreeMap<ObjectKey, IndexError> {
        &self.failures
    }

    /// Returns one of these namespaces that has left-out objects, and how many.
    pub(super) fn incomplete(&self, namespaces: &Namespaces) -> Option<(&str, usize)> {
        self.budgets.incomplete(namespaces)
    }

    /// Returns the next left-out slot that may have room now. Returns each slot once until more becomes free.
    pub(super) fn next_left_out(&mut self) -> Option<Slot> {
        self.budgets.next_to_try(self.limits.bytes_per_index)
    }

    /// Whether a left-out object may have room now.
    pub(super) fn may_have_room(&self) -> bool {
        self.budgets.may_have_room()
    }

    pub(super) fn status(&self) -> IndexStatus {
        let (left_out, incomplete_namespaces) = self.budgets.left_out();
        IndexStatus {
            values: self.postings.len(),
            failed: self.n_failed,
            left_out,
            incomplete_namespaces,
            bytes: self.size(),
        }
    }

    /// Returns about how many bytes the index takes.
    pub(super) fn size(&self) -> usize {
        self.bytes + self.filed.capacity() * size_of::<Filed>()
    }

    fn check_limits(
        &self,
        values: &Values<'_>,
        slot: Slot,
        slots: &Slots,
    ) -> Result<(), (Filed, IndexError)> {
        let IndexLimits { values_per_object, bytes_per_index } = self.limits;
        if values.len() > values_per_object {
            let error = IndexError(format!("{} values, more than {values_per_object}", values.len()));
            return Err((Filed::TooManyValues, error));
        }
        let needed: usize = values.iter().map(|value| charge_of(&filed_as(value))).sum();
        let namespace = slots.key(slot).map_or("", ObjectKey::namespace);
        if !self.budgets.has_room(namespace, needed, bytes_per_index) {
            let error = IndexError(format!(
                "namespace {namespace:?} uses its share of the {bytes_per_index} bytes of the index"
            ));
            return Err((Filed::NoRoom, error));
        }
        Ok(())
    }

    fn fail(&mut self, slot: Slot, failed: Filed, error: IndexError, slots: &Slots) {
        self.n_failed += 1;
        if let Some(key) = slots.key(slot) {
            match failed {
                Filed::NoRoom => self.budgets.add_without_room(key.namespace(), slot),
                Filed::TooManyValues => self.budgets.add_too_large(key.namespace()),
                _ => {}
            }
            if self.failures.len() < MAX_FAILURES {
                // Only at debug level, since this runs under the cache's lock at each event.
                tracing::debug!(%key, %error, index = ?self.source, "an object is missing from an index");
                self.failures.insert(key.clone(), error);
            }
        }
        self.set(slot, failed);
    }

    fn set(&mut self, slot: Slot, filed: Filed) {
        let position = slot as usize;
        if position >= self.filed.len() {
            self.filed.resize(position + 1, Filed::Nothing);
        }
        self.filed[position] = filed;
    }

    /// Files a slot under one value. Returns the index's copy of the value.
    fn file(&mut self, value: &str, slot: Slot, slots: &Slots) -> Arc<str> {
        let shared = match self.postings.get_key_value(value) {
            Some((shared, _)) => {
                let shared = shared.clone();
                if let Some(postings) = self.postings.get_mut(value) {
                    postings.insert(slot, slots);
                    self.bytes += POSTING_COST;
                }
                shared
            }
            None => {
                let shared: Arc<str> = Arc::from(value);
                self.bytes += value.len() + VALUE_COST;
                self.postings.insert(shared.clone(), Postings::One(slot));
                shared
            }
        };
        if let Some(by_namespace) =
            self.by_namespace.as_mut().filter(|by_namespace| by_namespace.has_reached(slot))
        {
            self.bytes += by_namespace.insert(&shared, slot, slots);
        }
        shared
    }
}

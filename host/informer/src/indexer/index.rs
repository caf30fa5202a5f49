//! One index: what it files objects under, and the objects under each value.

mod by_namespace;
mod long_value;
mod namespace_budgets;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use oarlock_json::{PointerPattern, find_each};

use self::by_namespace::ValuesByNamespace;
pub use self::by_namespace::ValuesCursor;
pub(super) use self::long_value::{filed_as, is_cut};
use self::namespace_budgets::{NamespaceBudgets, charge_of};
use super::IndexId;
use super::postings::Postings;
use super::slots::{Slot, Slots};
use crate::names::ObjectKey;
use crate::namespaces::Namespaces;
use crate::object::Object;
use crate::user_function::{self, UserFunction};

/// What an index files an object under: none, one or several values. Duplicates collapse.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IndexSource {
    /// The value of this label.
    Label(String),
    /// The uids of its owners.
    OwnerUid,
    /// The scalars at this place, as text without quotes; nothing for null. Objects and lists cannot be filed.
    Pointer(PointerPattern),
    /// Whatever this function answers.
    Function(IndexFunction),
}

/// A function that computes an object's values. Two of them are equal when they are clones of one.
#[derive(Clone)]
pub struct IndexFunction(Arc<IndexFn>);

type IndexFn = dyn Fn(&Object) -> Result<Vec<String>, IndexError> + Send + Sync;

/// Why an object cannot be filed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cannot be indexed: {0}")]
pub struct IndexError(pub String);

/// What an index files one object under, or why it cannot.
pub(super) type Filing<'a> = Result<Values<'a>, IndexError>;

/// What an object is to be filed under: sorted, each value once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Values<'a> {
    None,
    One(Cow<'a, str>),
    Many(Vec<String>),
}

/// How much an index may take. An object beyond a limit is left out, and reads of its namespace answer
/// [`Error::Incomplete`](super::Error::Incomplete) until it is filed or gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// An object with more values than these is left out.
    pub values_per_object: usize,
    /// How many bytes the values of an index may take, 32 counted for each beside its text. One namespace may
    /// use an eighth of them; cluster-scoped objects may use all. Once all are used, only a namespace with
    /// less than an equal share gets more.
    pub bytes_per_index: usize,
}

/// A look at an index.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IndexStatus {
    /// How many values it has.
    pub values: usize,
    /// How many objects could not be filed.
    pub failed: usize,
    /// How many of them were left out because of a limit. Reads of their namespaces answer an error.
    pub left_out: usize,
    /// How many namespaces have such objects.
    pub incomplete_namespaces: usize,
    /// About how many bytes it takes.
    pub bytes: usize,
}

/// An index and everything in it.
#[derive(Debug)]
pub(super) struct Index {
    source: IndexSource,
    limits: Limits,
    /// How many names it has.
    pub(super) n_users: usize,
    /// Over all namespaces, for readers of all; no value without objects.
    postings: BTreeMap<Arc<str>, Postings>,
    /// The same by namespace, for readers of some: made when the first of them asks.
    by_namespace: Option<ValuesByNamespace>,
    /// What each slot's object is filed under.
    filed: Vec<Filed>,
    /// Of those that failed the first few, and why.
    failures: BTreeMap<ObjectKey, IndexError>,
    n_failed: usize,
    /// What each namespace uses, and what was left out.
    budgets: NamespaceBudgets,
    /// About what values and postings take.
    bytes: usize,
}

/// What a slot's object is filed under.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
enum Filed {
    #[default]
    Nothing,
    One(Arc<str>),
    Many(Box<[Arc<str>]>),
    /// The source has no value for it.
    Failed,
    /// Left out: it waits for room.
    Waiting,
    /// Left out: it has too many values.
    Refused,
}

/// About how many bytes a value takes beside its text.
const VALUE_COST: usize = 88;

/// About how many bytes each further object of a value takes.
const POSTING_COST: usize = 8;

/// Of how many failures the reason is kept.
const MAX_FAILURES: usize = 1000;

// === impl IndexSource ===

impl IndexSource {
    /// Returns what it files an object under, sorted, each value once.
    ///
    /// # Errors
    ///
    /// When it cannot file the object.
    pub fn values(&self, object: &Object) -> Result<Vec<String>, IndexError> {
        Ok(Values::of(self, object)?.iter().map(str::to_owned).collect())
    }
}

// === impl IndexFunction ===

impl IndexFunction {
    /// Makes an index function.
    pub fn new(
        function: impl Fn(&Object) -> Result<Vec<String>, IndexError> + Send + Sync + 'static,
    ) -> Self {
        Self(Arc::new(function))
    }
}

impl PartialEq for IndexFunction {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for IndexFunction {}

impl fmt::Debug for IndexFunction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("IndexFunction")
    }
}

// === impl Limits ===

/// 256 values, 256 MiB.
impl Default for Limits {
    fn default() -> Self {
        Self { values_per_object: 256, bytes_per_index: 256 << 20 }
    }
}

// === impl Values ===

impl<'a> Values<'a> {
    /// Computes what the source files the object under.
    pub(super) fn of(source: &IndexSource, object: &'a Object) -> Result<Self, IndexError> {
        let values = match source {
            IndexSource::Label(label) => {
                return Ok(object.label_set().get(label).map_or(Self::None, Self::One));
            }
            IndexSource::OwnerUid => object.owner_references().into_iter().map(|owner| owner.uid).collect(),
            IndexSource::Pointer(pattern) => {
                let json = object.json();
                let texts = find_each(&json, &[pattern.segments()]).pop().unwrap_or_default();
                scalars(&texts, pattern)?
            }
            IndexSource::Function(function) => {
                let answer = user_function::call(UserFunction::Index, object.key(), || function.0(object));
                answer.map_err(|panic| IndexError(panic.to_string()))??
            }
        };
        Ok(Self::sorted(values))
    }

    /// Computes what several sources file the object under, in one walk over its text.
    pub(super) fn of_each(
        sources: &[(IndexId, IndexSource)],
        object: &'a Object,
    ) -> Vec<(IndexId, Result<Self, IndexError>)> {
        let patterns = sources.iter().filter_map(|(_, source)| match source {
            IndexSource::Pointer(pattern) => Some(pattern.segments()),
            _ => None,
        });
        let segments: Vec<_> = patterns.collect();
        let json = (!segments.is_empty()).then(|| object.json());
        let mut found = json.iter().flat_map(|json| find_each(json, &segments));
        let values = |source: &IndexSource| match source {
            IndexSource::Pointer(pattern) => {
                scalars(&found.next().unwrap_or_default(), pattern).map(Self::sorted)
            }
            _ => Self::of(source, object),
        };
        let ids = sources.iter().map(|(id, _)| *id);
        ids.zip(sources.iter().map(|(_, source)| source).map(values)).collect()
    }

    fn sorted(mut values: Vec<String>) -> Self {
        values.sort_unstable();
        values.dedup();
        match values.len() {
            0 => Self::None,
            1 => values.pop().map_or(Self::None, |value| Self::One(value.into())),
            _ => Self::Many(values),
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &str> {
        let (one, many) = match self {
            Self::None => (None, &[][..]),
            Self::One(one) => (Some(&**one), &[][..]),
            Self::Many(many) => (None, &many[..]),
        };
        one.into_iter().chain(many.iter().map(String::as_str))
    }

    pub(super) fn len(&self) -> usize {
        match self {
            Self::None => 0,
            Self::One(_) => 1,
            Self::Many(many) => many.len(),
        }
    }
}

fn scalars(texts: &[&str], pattern: &PointerPattern) -> Result<Vec<String>, IndexError> {
    let mut values = Vec::with_capacity(texts.len());
    for text in texts {
        match text.as_bytes().first() {
            Some(b'"') => {
                let value = serde_json::from_str(text);
                values.push(value.map_err(|error| IndexError(format!("the value at {pattern}: {error}")))?);
            }
            Some(b'{' | b'[') => return Err(IndexError(format!("the value at {pattern} is not a scalar"))),
            _ if *text == "null" => {}
            _ => values.push((*text).to_owned()),
        }
    }
    Ok(values)
}

// === impl Filed ===

impl Filed {
    fn values(&self) -> &[Arc<str>] {
        match self {
            Self::Nothing | Self::Failed | Self::Waiting | Self::Refused => &[],
            Self::One(one) => std::slice::from_ref(one),
            Self::Many(many) => many,
        }
    }

    /// Whether the object stays filed as it is.
    fn is(&self, values: &Values<'_>) -> bool {
        !self.is_failure()
            && self.values().len() == values.len()
            && self.values().iter().zip(values.iter()).all(|(filed, value)| **filed == *filed_as(value))
    }

    fn is_failure(&self) -> bool {
        matches!(self, Self::Failed | Self::Waiting | Self::Refused)
    }

    fn size(&self) -> usize {
        match self {
            Self::Many(many) => size_of_val::<[Arc<str>]>(many),
            _ => 0,
        }
    }

    fn charge(&self) -> usize {
        self.values().iter().map(|value| charge_of(value)).sum()
    }
}

// === impl Index ===

impl Index {
    pub(super) fn new(source: IndexSource, limits: Limits) -> Self {
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

    /// Files a slot's object, wherever the slot's object was filed before. One that cannot be filed is in the index nowhere,
    /// but counted among its failures.
    pub(super) fn put(&mut self, slot: Slot, filing: Filing<'_>, slots: &Slots) {
        let values = match filing {
            Ok(values) => values,
            Err(error) => {
                self.remove(slot, slots);
                self.fail(slot, Filed::Failed, error, slots);
                return;
            }
        };
        if self.filed.get(slot as usize).unwrap_or(&Filed::Nothing).is(&values) {
            return;
        }
        self.remove(slot, slots);
        if let Err((failed, error)) = self.has_room_for(&values, slot, slots) {
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
            self.budgets.take(key.namespace(), filed.charge());
        }
        self.set(slot, filed);
    }

    /// Takes a slot's object out.
    pub(super) fn remove(&mut self, slot: Slot, slots: &Slots) {
        let Some(filed) = self.filed.get_mut(slot as usize).map(std::mem::take) else { return };
        self.bytes -= filed.size();
        if filed.is_failure() {
            self.n_failed -= 1;
            if let Some(key) = slots.key(slot) {
                self.failures.remove(key);
                self.budgets.forget(key.namespace(), slot, filed == Filed::Refused);
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
            self.budgets.give_back(key.namespace(), filed.charge());
        }
    }

    /// Takes everything out; returns it, to be dropped without the lock.
    pub(super) fn clear(&mut self) -> impl Sized + use<> {
        self.n_failed = 0;
        self.bytes = 0;
        let by_namespace = self.by_namespace.as_mut().map(ValuesByNamespace::clear);
        let filed = std::mem::take(&mut self.filed);
        let budgets = std::mem::take(&mut self.budgets);
        (filed, std::mem::take(&mut self.postings), std::mem::take(&mut self.failures), by_namespace, budgets)
    }

    /// Returns the postings of a value over all namespaces.
    pub(super) fn postings(&self, value: &str) -> Option<&Postings> {
        self.postings.get(&*filed_as(value))
    }

    /// Returns the slots under a value in these namespaces after a key, in order. What it lookups at depends on
    /// these namespaces only: for some of them, [`Index::split`] must have ended.
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

    /// Makes the next few slots readable by namespace; answers whether all are.
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

    /// Whether readers of some namespaces can be answered.
    pub(super) fn is_split(&self) -> bool {
        self.by_namespace.as_ref().is_some_and(ValuesByNamespace::is_complete)
    }

    /// Adds up to `limit` values after one that these namespaces have to `found`. Returns where to go on,
    /// none at the end.
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

    /// Returns an object that is filed under this key of a value in one of these namespaces.
    pub(super) fn any_slot(&self, filed: &str, slots: &Slots, namespaces: &Namespaces) -> Option<Slot> {
        match (namespaces, &self.by_namespace) {
            (Namespaces::All, _) => self.postings.get(filed)?.iter().next(),
            (Namespaces::Only(some), Some(by_namespace)) => {
                by_namespace.within(filed.to_owned(), slots, some, None).next()
            }
            (Namespaces::Only(_), None) => None,
        }
    }

    /// In which namespaces readers of some have looked since this was asked last, and how often.
    #[cfg(test)]
    pub(super) fn lookups(&self) -> BTreeMap<Box<str>, usize> {
        self.by_namespace.as_ref().map(|by_namespace| by_namespace.lookups.take()).unwrap_or_default()
    }

    pub(super) fn failures(&self) -> &BTreeMap<ObjectKey, IndexError> {
        &self.failures
    }

    /// Returns one of these namespaces of which objects were left out, and how many of it.
    pub(super) fn incomplete(&self, namespaces: &Namespaces) -> Option<(&str, usize)> {
        self.budgets.incomplete(namespaces)
    }

    /// Returns a slot that was left out and may have room by now, each once until there is more room again.
    pub(super) fn next_left_out(&mut self) -> Option<Slot> {
        self.budgets.next_to_try(self.limits.bytes_per_index)
    }

    /// Whether something that was left out may have room by now.
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

    /// Returns about how many bytes it takes.
    pub(super) fn size(&self) -> usize {
        self.bytes + self.filed.capacity() * size_of::<Filed>()
    }

    fn has_room_for(
        &self,
        values: &Values<'_>,
        slot: Slot,
        slots: &Slots,
    ) -> Result<(), (Filed, IndexError)> {
        let Limits { values_per_object, bytes_per_index } = self.limits;
        if values.len() > values_per_object {
            let error = IndexError(format!("{} values, more than {values_per_object}", values.len()));
            return Err((Filed::Refused, error));
        }
        let needed: usize = values.iter().map(|value| charge_of(&filed_as(value))).sum();
        let namespace = slots.key(slot).map_or("", ObjectKey::namespace);
        if !self.budgets.has_room(namespace, needed, bytes_per_index) {
            let error = IndexError(format!(
                "no room: namespace {namespace:?} uses its part of the index's {bytes_per_index} bytes"
            ));
            return Err((Filed::Waiting, error));
        }
        Ok(())
    }

    fn fail(&mut self, slot: Slot, failed: Filed, error: IndexError, slots: &Slots) {
        self.n_failed += 1;
        if let Some(key) = slots.key(slot) {
            match failed {
                Filed::Waiting => self.budgets.wait(key.namespace(), slot),
                Filed::Refused => self.budgets.refuse(key.namespace()),
                _ => {}
            }
            if self.failures.len() < MAX_FAILURES {
                // Under the cache's lock, once for every event: who wants to know asks `index_failures`.
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

    /// Files a slot under one value; returns the value as the index keeps it.
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

//! One index: what it files objects under, and the objects under each value.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::ops::Bound;
use std::sync::Arc;

use super::postings::Postings;
use super::slots::{Slot, Slots};
use crate::json_pointer::PointerPattern;
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

/// How much an index may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// An object with more values than these is not filed.
    pub values_per_object: usize,
    /// Once an index takes this many bytes, what would need more is not filed.
    pub bytes_per_index: usize,
}

/// A look at an index.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IndexStatus {
    /// How many values it has.
    pub values: usize,
    /// How many objects could not be filed.
    pub failed: usize,
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
    /// No value without objects.
    postings: BTreeMap<Arc<str>, Postings>,
    /// What each slot's object is filed under.
    filed: Vec<Filed>,
    /// Of those that failed the first few, and why.
    failures: BTreeMap<ObjectKey, IndexError>,
    n_failed: usize,
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
    Failed,
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
            IndexSource::Pointer(pattern) => scalars(&object.pattern(pattern), pattern)?,
            IndexSource::Function(function) => {
                let answer = user_function::call(UserFunction::Index, object.key(), || function.0(object));
                answer.map_err(|panic| IndexError(panic.to_string()))??
            }
        };
        Ok(Self::sorted(values))
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

fn scalars(texts: &[String], pattern: &PointerPattern) -> Result<Vec<String>, IndexError> {
    let mut values = Vec::with_capacity(texts.len());
    for text in texts {
        match text.as_bytes().first() {
            Some(b'"') => {
                let value = serde_json::from_str(text);
                values.push(value.map_err(|error| IndexError(format!("the value at {pattern}: {error}")))?);
            }
            Some(b'{' | b'[') => return Err(IndexError(format!("the value at {pattern} is not a scalar"))),
            _ if text == "null" => {}
            _ => values.push(text.clone()),
        }
    }
    Ok(values)
}

// === impl Filed ===

impl Filed {
    fn values(&self) -> &[Arc<str>] {
        match self {
            Self::Nothing | Self::Failed => &[],
            Self::One(one) => std::slice::from_ref(one),
            Self::Many(many) => many,
        }
    }

    /// Whether the object stays filed as it is.
    fn is(&self, values: &Values<'_>) -> bool {
        *self != Self::Failed
            && self.values().len() == values.len()
            && self.values().iter().zip(values.iter()).all(|(filed, value)| **filed == *value)
    }

    fn size(&self) -> usize {
        match self {
            Self::Many(many) => size_of_val::<[Arc<str>]>(many),
            Self::Nothing | Self::One(_) | Self::Failed => 0,
        }
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
            filed: Vec::new(),
            failures: BTreeMap::new(),
            n_failed: 0,
            bytes: 0,
        }
    }

    pub(super) fn source(&self) -> &IndexSource {
        &self.source
    }

    /// Files a slot's object, wherever the slot's object was filed before. One that cannot be filed is in the index nowhere,
    /// but counted among its failures.
    pub(super) fn put(&mut self, slot: Slot, filing: Filing<'_>, slots: &Slots) {
        let filing = filing.and_then(|values| self.within_limits(values));
        let values = match filing {
            Ok(values) => values,
            Err(error) => {
                self.remove(slot, slots);
                self.fail(slot, error, slots);
                return;
            }
        };
        if self.filed.get(slot as usize).unwrap_or(&Filed::Nothing).is(&values) {
            return;
        }
        self.remove(slot, slots);
        let mut shared = values.iter().map(|value| self.file(value, slot, slots));
        let filed = match values.len() {
            0 => return,
            1 => shared.next().map_or(Filed::Nothing, Filed::One),
            _ => Filed::Many(shared.collect()),
        };
        self.bytes += filed.size();
        self.set(slot, filed);
    }

    /// Takes a slot's object out.
    pub(super) fn remove(&mut self, slot: Slot, slots: &Slots) {
        let Some(filed) = self.filed.get_mut(slot as usize).map(std::mem::take) else { return };
        self.bytes -= filed.size();
        if filed == Filed::Failed {
            self.n_failed -= 1;
            if let Some(key) = slots.key(slot) {
                self.failures.remove(key);
            }
        }
        for value in filed.values() {
            let Some(postings) = self.postings.get_mut(value) else { continue };
            if postings.remove(slot, slots) {
                self.postings.remove(value);
                self.bytes -= value.len() + VALUE_COST;
            } else {
                self.bytes -= POSTING_COST;
            }
        }
    }

    /// Takes everything out; returns it, to be dropped without the lock.
    pub(super) fn clear(&mut self) -> impl Sized + use<> {
        self.n_failed = 0;
        self.bytes = 0;
        let filed = std::mem::take(&mut self.filed);
        (filed, std::mem::take(&mut self.postings), std::mem::take(&mut self.failures))
    }

    pub(super) fn postings(&self, value: &str) -> Option<&Postings> {
        self.postings.get(value)
    }

    /// Returns how many values there are.
    pub(super) fn n_values(&self) -> usize {
        self.postings.len()
    }

    /// Looks at no more than `limit` values after one; adds those that have an object in these namespaces to `found`.
    /// Returns the last one that it looked at, if there may be more.
    pub(super) fn values_after(
        &self,
        after: Option<&Arc<str>>,
        limit: usize,
        namespaces: &Namespaces,
        slots: &Slots,
        found: &mut Vec<String>,
    ) -> Option<Arc<str>> {
        let start = after.map_or(Bound::Unbounded, Bound::Excluded);
        let mut last = None;
        for (value, postings) in self.postings.range::<Arc<str>, _>((start, Bound::Unbounded)).take(limit) {
            if postings.has_any_of(slots, namespaces) {
                found.push(value.to_string());
            }
            last = Some(value);
        }
        last.filter(|_| self.postings.len() > limit).cloned()
    }

    /// Returns the values of a slot's object.
    pub(super) fn values_of(&self, slot: Slot) -> &[Arc<str>] {
        self.filed.get(slot as usize).map_or(&[], Filed::values)
    }

    pub(super) fn failures(&self) -> &BTreeMap<ObjectKey, IndexError> {
        &self.failures
    }

    pub(super) fn status(&self) -> IndexStatus {
        IndexStatus { values: self.postings.len(), failed: self.n_failed, bytes: self.size() }
    }

    /// Returns about how many bytes it takes.
    pub(super) fn size(&self) -> usize {
        self.bytes + self.filed.capacity() * size_of::<Filed>()
    }

    fn within_limits<'a>(&self, values: Values<'a>) -> Filing<'a> {
        let Limits { values_per_object, bytes_per_index } = self.limits;
        if values.len() > values_per_object {
            return Err(IndexError(format!("{} values, more than {values_per_object}", values.len())));
        }
        if self.bytes > bytes_per_index {
            return Err(IndexError(format!("the index has more than {bytes_per_index} bytes")));
        }
        Ok(values)
    }

    fn fail(&mut self, slot: Slot, error: IndexError, slots: &Slots) {
        self.n_failed += 1;
        self.set(slot, Filed::Failed);
        if self.failures.len() < MAX_FAILURES
            && let Some(key) = slots.key(slot)
        {
            // Under the cache's lock, once for every event: who wants to know asks `index_failures`.
            tracing::debug!(%key, %error, index = ?self.source, "an object is missing from an index");
            self.failures.insert(key.clone(), error);
        }
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
        if let Some((shared, _)) = self.postings.get_key_value(value) {
            let shared = shared.clone();
            if let Some(postings) = self.postings.get_mut(value) {
                postings.insert(slot, slots);
                self.bytes += POSTING_COST;
            }
            return shared;
        }
        let shared: Arc<str> = Arc::from(value);
        self.bytes += value.len() + VALUE_COST;
        self.postings.insert(shared.clone(), Postings::One(slot));
        shared
    }
}

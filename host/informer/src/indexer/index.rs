//! One index: what it files objects under, and the objects under each value.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;
use std::ops::Bound;
use std::sync::Arc;

use crate::json_pointer::PointerPattern;
use crate::names::ObjectKey;
use crate::namespaces::Namespaces;
use crate::object::Object;

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

/// An index and everything in it.
#[derive(Debug)]
pub(super) struct Index {
    source: IndexSource,
    /// How many names it has.
    pub(super) n_users: usize,
    /// No value without objects.
    keys_by_value: BTreeMap<Arc<str>, BTreeSet<ObjectKey>>,
    /// Only objects with at least one value.
    values_by_key: HashMap<ObjectKey, Values>,
    failures: BTreeMap<ObjectKey, IndexError>,
}

/// What an object is filed under: sorted, each value once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Values(Box<[Arc<str>]>);

// === impl IndexSource ===

impl IndexSource {
    /// Returns what it files an object under, sorted, each value once.
    ///
    /// # Errors
    ///
    /// When it cannot file the object.
    pub fn values(&self, object: &Object) -> Result<Vec<String>, IndexError> {
        Ok(Values::of(self, object)?.iter().map(ToString::to_string).collect())
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

// === impl Values ===

impl Values {
    /// Computes what the source files the object under.
    pub(super) fn of(source: &IndexSource, object: &Object) -> Result<Self, IndexError> {
        let values = match source {
            IndexSource::Label(label) => {
                object.label_set().get(label).map(std::borrow::Cow::into_owned).into_iter().collect()
            }
            IndexSource::OwnerUid => object.owner_references().into_iter().map(|owner| owner.uid).collect(),
            IndexSource::Pointer(pattern) => scalars(&object.pattern(pattern), pattern)?,
            IndexSource::Function(function) => function.0(object)?,
        };
        let values: BTreeSet<String> = values.into_iter().collect();
        Ok(Self(values.into_iter().map(Arc::from).collect()))
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Arc<str>> {
        self.0.iter()
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

// === impl Index ===

impl Index {
    pub(super) fn new(source: IndexSource) -> Self {
        Self {
            source,
            n_users: 1,
            keys_by_value: BTreeMap::new(),
            values_by_key: HashMap::new(),
            failures: BTreeMap::new(),
        }
    }

    pub(super) fn source(&self) -> &IndexSource {
        &self.source
    }

    /// Files an object, wherever it was filed before. One that cannot be filed is in the index nowhere, but among its failures.
    pub(super) fn put(&mut self, key: &ObjectKey, values: Result<Values, IndexError>) {
        let values = match values {
            Ok(values) => values,
            Err(error) => {
                self.remove(key);
                self.failures.insert(key.clone(), error);
                return;
            }
        };
        if !self.failures.is_empty() {
            self.failures.remove(key);
        }
        if self.values_by_key.get(key) == Some(&values) {
            return;
        }
        self.remove(key);
        if values.0.is_empty() {
            return;
        }
        let shared = values.0.iter().map(|value| self.file(value, key)).collect();
        self.values_by_key.insert(key.clone(), Values(shared));
    }

    /// Takes an object out.
    pub(super) fn remove(&mut self, key: &ObjectKey) {
        if !self.failures.is_empty() {
            self.failures.remove(key);
        }
        let Some(values) = self.values_by_key.remove(key) else { return };
        for value in values.iter() {
            if let Some(keys) = self.keys_by_value.get_mut(value) {
                keys.remove(key);
                if keys.is_empty() {
                    self.keys_by_value.remove(value);
                }
            }
        }
        if self.values_by_key.len() < self.values_by_key.capacity() / 8 {
            self.values_by_key.shrink_to(self.values_by_key.len() * 2);
        }
    }

    pub(super) fn clear(&mut self) {
        self.keys_by_value.clear();
        self.values_by_key = HashMap::new();
        self.failures.clear();
    }

    pub(super) fn keys(&self, value: &str) -> Option<&BTreeSet<ObjectKey>> {
        self.keys_by_value.get(value)
    }

    /// Returns the values that have an object in these namespaces.
    pub(super) fn values(&self, namespaces: &Namespaces) -> Vec<String> {
        let has_one = |keys: &BTreeSet<ObjectKey>| match namespaces {
            Namespaces::All => true,
            Namespaces::Only(namespaces) => namespaces.iter().any(|namespace| {
                let start = ObjectKey::new(namespace, "");
                let first = keys.range((Bound::Included(start), Bound::Unbounded)).next();
                first.is_some_and(|key| key.namespace() == namespace)
            }),
        };
        let values = self.keys_by_value.iter().filter(|(_, keys)| has_one(keys));
        values.map(|(value, _)| value.to_string()).collect()
    }

    pub(super) fn failures(&self) -> &BTreeMap<ObjectKey, IndexError> {
        &self.failures
    }

    /// Files an object under one value; returns the value as the index keeps it.
    fn file(&mut self, value: &Arc<str>, key: &ObjectKey) -> Arc<str> {
        if let Some((shared, _)) = self.keys_by_value.get_key_value(value) {
            let shared = shared.clone();
            if let Some(keys) = self.keys_by_value.get_mut(&shared) {
                keys.insert(key.clone());
            }
            return shared;
        }
        self.keys_by_value.insert(value.clone(), BTreeSet::from([key.clone()]));
        value.clone()
    }
}

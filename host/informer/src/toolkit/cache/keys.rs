//! How objects come by their keys.
//!
//! By default an object's key is its namespace and name. Whoever keeps objects under other keys gives the queue and the cache the
//! same function.

use std::error::Error as StdError;
use std::fmt;
use std::sync::Arc;

use crate::delta_fifo::{Delta, DeltaObject, Deltas};
use crate::indexer::IndexSource;
use crate::names::ObjectKey;
use crate::object::Object;
use crate::user_function::{self, UserFunction};

/// Computes the key under which an object is queued and stored: its namespace and name by default.
#[derive(Clone, Default)]
pub struct KeyFunction(Option<Arc<KeyFn>>);

type KeyFn = dyn Fn(&Object) -> Result<ObjectKey, Cause> + Send + Sync;

/// Why a key function has no key for an object.
pub type Cause = Box<dyn StdError + Send + Sync>;

/// An object that a key function could not name, and why not.
#[derive(Clone, Debug, thiserror::Error)]
#[error("cannot make a key for {object:?}")]
pub struct KeyError {
    /// The object.
    pub object: Object,
    /// What the key function answered.
    pub source: Arc<dyn StdError + Send + Sync>,
}

/// What has a key: an object, what became of one, or a key itself.
#[derive(Clone, Copy, Debug)]
pub enum Keyed<'a> {
    /// A key is its own.
    Key(&'a ObjectKey),
    /// An object has the key that the key function gives it.
    Object(&'a Object),
    /// A deletion has its object's; a tombstone the one that it was made with.
    Deleted(&'a DeltaObject),
}

/// An index whose values are to be keys has not one value for an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the index has {0} values for the object, a key has to be one")]
pub struct NotOneValue(pub usize);

// === impl KeyFunction ===

impl KeyFunction {
    /// Makes a key function. It must always answer the same for an object.
    pub fn new(function: impl Fn(&Object) -> Result<ObjectKey, Cause> + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(function)))
    }

    /// Makes a key function of what an index would file an object under, which has to be one value, other than those of all other
    /// objects. The key is that value, whole.
    #[must_use]
    pub fn of_index(source: IndexSource) -> Self {
        Self::new(move |object| match &source.values(object)?[..] {
            [value] => Ok(ObjectKey::new("", value)),
            values => Err(NotOneValue(values.len()).into()),
        })
    }

    /// Whether objects have their namespace and name as keys.
    pub(crate) fn is_default(&self) -> bool {
        self.0.is_none()
    }

    /// Returns the key of whatever has one.
    ///
    /// # Errors
    ///
    /// When the function has none for the object.
    pub fn key_of<'a>(&self, keyed: impl Into<Keyed<'a>>) -> Result<ObjectKey, KeyError> {
        match keyed.into() {
            Keyed::Key(key) => Ok(key.clone()),
            Keyed::Deleted(DeltaObject::Tombstone(tombstone)) => Ok(tombstone.key.clone()),
            Keyed::Object(object) | Keyed::Deleted(DeltaObject::Object(object)) => match &self.0 {
                None => Ok(object.key().clone()),
                Some(function) => user_function::call(UserFunction::Key, object.key(), || function(object))
                    .unwrap_or_else(|panic| Err(panic.into()))
                    .map_err(|cause| KeyError { object: object.clone(), source: cause.into() }),
            },
        }
    }
}

impl fmt::Debug for KeyFunction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "KeyFunction" } else { "KeyFunction(namespace/name)" })
    }
}

// === impl Keyed ===

impl<'a> From<&'a ObjectKey> for Keyed<'a> {
    fn from(key: &'a ObjectKey) -> Self {
        Self::Key(key)
    }
}

impl<'a> From<&'a Object> for Keyed<'a> {
    fn from(object: &'a Object) -> Self {
        Self::Object(object)
    }
}

impl<'a> From<&'a DeltaObject> for Keyed<'a> {
    fn from(deleted: &'a DeltaObject) -> Self {
        Self::Deleted(deleted)
    }
}

impl<'a> From<&'a Delta> for Keyed<'a> {
    fn from(delta: &'a Delta) -> Self {
        match delta {
            Delta::Added(object) | Delta::Updated(object) | Delta::Replaced(object) | Delta::Sync(object) => {
                Self::Object(object)
            }
            Delta::Deleted(deleted) => Self::Deleted(deleted),
        }
    }
}

/// The newest counts.
impl<'a> From<&'a Deltas> for Keyed<'a> {
    fn from(deltas: &'a Deltas) -> Self {
        deltas.newest().into()
    }
}

#[cfg(test)]
mod tests;

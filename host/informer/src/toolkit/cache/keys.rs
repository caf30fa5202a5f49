//! Key functions: they compute the key of an object.
//!
//! By default the key of an object is its namespace and name. A program with other keys passes the same key
//! function to the queue and to the cache.

use std::error::Error as StdError;
use std::fmt;
use std::sync::Arc;

use crate::delta_fifo::{Delta, DeltaObject, Deltas};
use crate::indexer::IndexSource;
use crate::names::ObjectKey;
use crate::object::Object;
use crate::user_function::{self, UserFunction};

/// Computes the key of an object in the queue and the cache; by default its namespace and name.
///
/// The default costs one branch: there is no function to call.
#[derive(Clone, Default)]
pub struct KeyFunction(Option<Arc<KeyFn>>);

type KeyFn = dyn Fn(&Object) -> Result<ObjectKey, Cause> + Send + Sync;

/// The reason why a key function has no key for an object.
pub type Cause = Box<dyn StdError + Send + Sync>;

/// A key function has no key for an object.
#[derive(Clone, Debug, thiserror::Error)]
#[error("cannot make a key for {object:?}")]
pub struct KeyError {
    /// The object.
    pub object: Object,
    /// The error of the key function.
    pub source: Arc<dyn StdError + Send + Sync>,
}

/// A value with a key: an object, a deletion or a key itself.
#[derive(Clone, Copy, Debug)]
pub enum Keyed<'a> {
    /// The key itself.
    Key(&'a ObjectKey),
    /// The key function computes the key.
    Object(&'a Object),
    /// The key of the deleted object, or the key in the tombstone.
    Deleted(&'a DeltaObject),
}

/// An index whose values are keys does not have exactly one value for an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the index has {0} values for the object; a key needs exactly one")]
pub struct NotOneValue(pub usize);

// === impl KeyFunction ===

impl KeyFunction {
    /// Returns a key function. The function must be pure: one object always has one key.
    pub fn new(function: impl Fn(&Object) -> Result<ObjectKey, Cause> + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(function)))
    }

    /// Returns a key function that uses the values of an index. The index must have exactly one value for an
    /// object, different from those of other objects. The key is the whole value.
    #[must_use]
    pub fn of_index(source: IndexSource) -> Self {
        Self::new(move |object| match &source.values(object)?[..] {
            [value] => Ok(ObjectKey::new("", value)),
            values => Err(NotOneValue(values.len()).into()),
        })
    }

    /// Returns true if the key is the namespace and name.
    pub(crate) fn is_default(&self) -> bool {
        self.0.is_none()
    }

    /// Returns the key of a value.
    ///
    /// # Errors
    ///
    /// When the function has no key for the object.
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

/// The newest delta counts.
impl<'a> From<&'a Deltas> for Keyed<'a> {
    fn from(deltas: &'a Deltas) -> Self {
        deltas.newest().into()
    }
}

#[cfg(test)]
mod tests;

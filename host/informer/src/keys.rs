//! How objects come by their keys.
//!
//! By default an object's key is its namespace and name. Whoever keeps objects under other keys gives the queue and the cache the
//! same function.

use std::error::Error as StdError;
use std::sync::Arc;

use crate::delta_fifo::{Delta, DeltaObject, Deltas};
use crate::names::ObjectKey;
use crate::object::Object;

/// Computes the key under which an object is queued and stored. It must always answer the same for an object.
pub type KeyFunction = fn(&Object) -> Result<ObjectKey, Box<dyn StdError + Send + Sync>>;

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

/// Names an object by its namespace and name; it never fails.
///
/// # Errors
///
/// Never.
pub fn namespace_and_name(object: &Object) -> Result<ObjectKey, Box<dyn StdError + Send + Sync>> {
    Ok(object.key().clone())
}

/// Returns the key of whatever has one.
///
/// # Errors
///
/// When the key function has none for the object.
pub fn key_of<'a>(key_function: KeyFunction, keyed: impl Into<Keyed<'a>>) -> Result<ObjectKey, KeyError> {
    match keyed.into() {
        Keyed::Key(key) => Ok(key.clone()),
        Keyed::Deleted(DeltaObject::Tombstone(tombstone)) => Ok(tombstone.key.clone()),
        Keyed::Object(object) | Keyed::Deleted(DeltaObject::Object(object)) => {
            key_function(object).map_err(|source| KeyError { object: object.clone(), source: source.into() })
        }
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

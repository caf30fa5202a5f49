//! The source of an index: what an object is filed under.

use std::fmt;
use std::sync::Arc;

use oarlock_json::PointerPattern;

use super::values::Values;
use crate::object::Object;

/// The source of the values under which an index files an object.
///
/// An object may have no value, one, or several. Duplicate values count once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IndexSource {
    /// The value of this label.
    Label(String),
    /// The uids of the object's owners.
    OwnerUid,
    /// The scalars that this pointer matches, as text without quotes. Null is no value. An object or list is
    /// an error.
    Pointer(PointerPattern),
    /// The values that this function returns.
    Function(IndexFunction),
}

/// A function that computes an object's values. Two functions are equal if one is a clone of the other.
#[derive(Clone)]
pub struct IndexFunction(pub(super) Arc<IndexFn>);

pub(super) type IndexFn = dyn Fn(&Object) -> Result<Vec<String>, IndexError> + Send + Sync;

/// Why an index cannot file an object.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cannot be indexed: {0}")]
pub struct IndexError(pub String);

// === impl IndexSource ===

impl IndexSource {
    /// Returns the values of an object, sorted, each once.
    ///
    /// # Errors
    ///
    /// The values cannot be computed.
    pub fn values(&self, object: &Object) -> Result<Vec<String>, IndexError> {
        Ok(Values::of(self, object)?.iter().map(str::to_owned).collect())
    }
}

// === impl IndexFunction ===

impl IndexFunction {
    /// Wraps a function.
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

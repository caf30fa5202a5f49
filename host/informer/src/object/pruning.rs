//! Chooses the fields of an object that are not kept.

mod fields;
mod prune;

pub use fields::{Fields, FieldsError};
pub(super) use prune::{FieldReader, Pruned};

/// The annotation in which `kubectl apply` stores the configuration that it applied last.
pub(super) const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// Chooses the fields that a cache leaves out of its objects, to save memory.
///
/// Pruned fields are missing from the object's text for every reader. So a cached object must not be written
/// back to the API server as a whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pruning {
    /// Leaves out `metadata.managedFields`, often a fifth of an object.
    pub managed_fields: bool,
    /// Leaves out the annotation `kubectl.kubernetes.io/last-applied-configuration`. An annotations map that
    /// becomes empty by that is left out, too: the API server writes no empty one.
    pub last_applied: bool,
    /// Chooses which of the other fields are kept.
    pub fields: Fields,
}

// === impl Pruning ===

impl Pruning {
    /// Leaves out nothing.
    pub fn none() -> Self {
        Self { managed_fields: false, last_applied: false, fields: Fields::all() }
    }
}

/// Leaves out `managedFields` and the last applied configuration.
impl Default for Pruning {
    fn default() -> Self {
        Self { managed_fields: true, last_applied: true, fields: Fields::all() }
    }
}

//! Requests to the API server, made as the plugin's ServiceAccount.

use serde::Serialize;
use serde::de::DeserializeOwned;

use oarlock_sdk_bindings::oarlock::plugin::client as wit;
pub use wit::{Part, PatchKind, Preconditions, Propagation, Written};

use crate::{Error, GroupVersionResource, ObjectKey};

/// No precondition.
pub const ANY: Preconditions = Preconditions { uid: None, resource_version: None };

/// Returns the current object, or `None` if it does not exist.
///
/// # Errors
///
/// Those of `client.get` in the contract, except `not-found`.
pub fn get<T: DeserializeOwned>(target: &GroupVersionResource, key: &ObjectKey) -> Result<Option<T>, Error> {
    match wit::get(target, key) {
        Ok(text) => crate::event::parse("", &text).map(Some),
        Err(Error::NotFound(_)) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Creates an object.
///
/// # Errors
///
/// Those of `client.create` in the contract, such as `already-exists`.
pub fn create(
    target: &GroupVersionResource,
    namespace: &str,
    object: &impl Serialize,
) -> Result<Written, Error> {
    wit::create(target, namespace, &text(object)?)
}

/// Applies an object, server-side, with the plugin's name as field manager.
///
/// # Errors
///
/// Those of `client.apply` in the contract; `conflict` if another manager owns a field and `force` is false.
pub fn apply(
    target: &GroupVersionResource,
    key: &ObjectKey,
    object: &impl Serialize,
    force: bool,
    preconditions: &Preconditions,
) -> Result<Written, Error> {
    wit::apply(target, key, Part::Object, &text(object)?, force, preconditions)
}

/// Changes an object by a JSON merge patch.
///
/// # Errors
///
/// Those of `client.patch` in the contract; `conflict` if a precondition does not hold.
pub fn merge_patch(
    target: &GroupVersionResource,
    key: &ObjectKey,
    patch: &impl Serialize,
    preconditions: &Preconditions,
) -> Result<Written, Error> {
    wit::patch(target, key, Part::Object, PatchKind::MergePatch, &text(patch)?, preconditions)
}

/// Deletes an object; its dependents are deleted in the background. Succeeds if the object does not exist.
///
/// # Errors
///
/// Those of `client.delete` in the contract, except `not-found`.
pub fn delete(
    target: &GroupVersionResource,
    key: &ObjectKey,
    preconditions: &Preconditions,
) -> Result<(), Error> {
    match wit::delete(target, key, Propagation::Background, preconditions) {
        Ok(()) | Err(Error::NotFound(_)) => Ok(()),
        Err(error) => Err(error),
    }
}

fn text(object: &impl Serialize) -> Result<String, Error> {
    serde_json::to_string(object)
        .map_err(|error| Error::Invalid(format!("the object cannot be written as JSON: {error}")))
}

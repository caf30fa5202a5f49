//! Requests to the API server, made as the plugin's ServiceAccount.

use serde::Serialize;
use serde::de::DeserializeOwned;

use oarlock_sdk_bindings::oarlock::plugin::client as wit;
pub use wit::{PatchKind, Preconditions, Propagation, Written};

use crate::cache::{Row, Select, all_pages};
use crate::{Error, GroupVersionResource, Namespaces, ObjectKey};

/// No precondition.
pub const ANY: Preconditions = Preconditions { uid: None, resource_version: None };

/// Returns the current object, or `None` if it does not exist.
///
/// # Errors
///
/// Those of `client.get` in the contract, except `not-found`.
pub fn get<T: DeserializeOwned>(target: &GroupVersionResource, key: &ObjectKey) -> Result<Option<T>, Error> {
    match wit::get(target, key, "") {
        Ok(text) => crate::event::parse("", &text).map(Some),
        Err(Error::NotFound(_)) => Ok(None),
        Err(error) => Err(error),
    }
}

/// The objects that [`list`] returns: those that match both selectors. The default matches all.
#[derive(Clone, Copy, Debug, Default)]
pub struct Matching<'a> {
    /// A label selector in the syntax of Kubernetes.
    pub labels: &'a str,
    /// A field selector in the syntax of Kubernetes, such as `metadata.name=web`.
    pub fields: &'a str,
}

/// Returns all objects that match, as the API server has them now. Reads all pages, and begins again (twice
/// at most) if the API server forgets the state that the pages show.
///
/// A lister ([`crate::cache::list`]) is cheaper from the second read on.
///
/// ```no_run
/// use oarlock_sdk::cache::Select;
/// use oarlock_sdk::client::{Matching, list};
/// use oarlock_sdk::{Error, Namespaces, gvr};
///
/// fn n_failed_jobs() -> Result<usize, Error> {
///     let failed = Matching { fields: "status.successful=0", ..Matching::default() };
///     let jobs = gvr("batch", "v1", "jobs");
///     let jobs = list(&jobs, &Namespaces::All, failed, Select::Keys)?;
///     Ok(jobs.len())
/// }
/// ```
///
/// # Errors
///
/// Those of `client.list` in the contract.
pub fn list(
    target: &GroupVersionResource,
    namespaces: &Namespaces,
    matching: Matching<'_>,
    select: Select<'_>,
) -> Result<Vec<Row>, Error> {
    let projection = select.into();
    let Matching { labels, fields } = matching;
    let mut restarts = 0;
    loop {
        let listed = all_pages(|page| wit::list(target, namespaces, labels, fields, &projection, page));
        match listed {
            Err(Error::Gone(_)) if restarts < 2 => restarts += 1,
            listed => return listed,
        }
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
    wit::apply(target, key, "", &text(object)?, force, preconditions)
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
    wit::patch(target, key, "", PatchKind::MergePatch, &text(patch)?, preconditions)
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
    match wit::delete(target, key, Propagation::Background, None, preconditions) {
        Ok(()) | Err(Error::NotFound(_)) => Ok(()),
        Err(error) => Err(error),
    }
}

fn text(object: &impl Serialize) -> Result<String, Error> {
    serde_json::to_string(object)
        .map_err(|error| Error::Invalid(format!("the object cannot be written as JSON: {error}")))
}

//! `finalizer`: cleans up before an object is deleted, as in kube-rs.

use std::fmt::{self, Debug, Display};
use std::future::Future;
use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde_json::json;

use super::{Action, Api, Patch, PatchParams, ResourceExt as _};
use crate::Resource;

/// What `reconcile` has to do with an object that has a finalizer. Both must be idempotent.
#[derive(Clone, Debug)]
pub enum Event<K> {
    /// The object exists: make the actual state match it.
    Apply(Arc<K>),
    /// The object is being deleted: remove what belongs to it. Afterwards the finalizer is removed.
    Cleanup(Arc<K>),
}

/// Why [`finalizer`] failed.
#[derive(Debug)]
pub enum Error<E> {
    /// The function failed with [`Event::Apply`].
    ApplyFailed(E),
    /// The function failed with [`Event::Cleanup`]. The finalizer stays.
    CleanupFailed(E),
    /// The request that adds the finalizer failed.
    AddFinalizer(crate::Error),
    /// The request that removes the finalizer failed.
    RemoveFinalizer(crate::Error),
}

/// Reconciles an object that needs a clean-up before it is deleted.
///
/// An object without the finalizer `name` gets it, which reconciles it again; only then the function is
/// called with [`Event::Apply`]. For an object that is being deleted, the function is called with
/// [`Event::Cleanup`], and if it succeeds, the finalizer is removed. The plugin needs the right to patch the
/// objects.
///
/// # Errors
///
/// Those of the function and of both requests. The requests test the finalizers that the object has: if
/// another client changed them meanwhile, they fail with `invalid`, and the next call sees the new ones.
pub async fn finalizer<K, F, E>(
    api: &Api<K>,
    name: &str,
    object: Arc<K>,
    reconcile: impl FnOnce(Event<K>) -> F,
) -> Result<Action, Error<E>>
where
    K: Resource + DeserializeOwned,
    F: Future<Output = Result<Action, E>>,
{
    let finalizers = object.finalizers();
    let at = finalizers.iter().position(|it| it == name);
    match (at, object.named().is_being_deleted()) {
        (Some(_), false) => reconcile(Event::Apply(object)).await.map_err(Error::ApplyFailed),
        (Some(at), true) => {
            let of = object.name_any();
            let action = reconcile(Event::Cleanup(object)).await.map_err(Error::CleanupFailed)?;
            let path = format!("/metadata/finalizers/{at}");
            let patch = json!([
                {"op": "test", "path": path, "value": name},
                {"op": "remove", "path": path},
            ]);
            match api.patch(&of, &PatchParams::default(), &Patch::Json(patch)).await {
                // A call before removed it, and the cache does not know that yet.
                Ok(_) | Err(crate::Error::NotFound(_)) => Ok(action),
                Err(error) => Err(Error::RemoveFinalizer(error)),
            }
        }
        (None, false) => {
            let there = if finalizers.is_empty() { json!(null) } else { json!(finalizers) };
            let all: Vec<_> = finalizers.iter().map(String::as_str).chain([name]).collect();
            let patch = json!([
                {"op": "test", "path": "/metadata/finalizers", "value": there},
                {"op": "add", "path": "/metadata/finalizers", "value": all},
            ]);
            let added = api.patch(&object.name_any(), &PatchParams::default(), &Patch::Json(patch)).await;
            added.map_err(Error::AddFinalizer)?;
            Ok(Action::await_change())
        }
        (None, true) => Ok(Action::await_change()),
    }
}

// === impl Error ===

impl<E: Display> Display for Error<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ApplyFailed(error) => write!(f, "failed to apply object: {error}"),
            Self::CleanupFailed(error) => write!(f, "failed to clean up object: {error}"),
            Self::AddFinalizer(error) => write!(f, "failed to add finalizer: {error}"),
            Self::RemoveFinalizer(error) => write!(f, "failed to remove finalizer: {error}"),
        }
    }
}

impl<E: std::error::Error + 'static> std::error::Error for Error<E> {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::ApplyFailed(error) | Self::CleanupFailed(error) => Some(error),
            Self::AddFinalizer(error) | Self::RemoveFinalizer(error) => Some(error),
        }
    }
}

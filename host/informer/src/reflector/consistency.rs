//! Compares the initial events of a watch with a list from etcd, for tests (CD-01).

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::time::Duration;

use serde_json::Value;

use super::StoreError;
use super::outcome::in_full;
use crate::list_watch::{ListOptions, ListWatch, VersionMatch};
use crate::names::ObjectKey;
use crate::object::Object;

/// The pause after a failed list.
const PAUSE: Duration = Duration::from_secs(1);

/// The differences between the received objects and the list: a bug of the server or of the reflector.
#[derive(Clone, Debug, Default, PartialEq, Eq, thiserror::Error)]
#[error("missing {missing:?}, surplus {surplus:?}, different {different:?}")]
pub(super) struct Inconsistency {
    /// Objects that are only in the list.
    missing: Vec<ObjectKey>,
    /// Objects that are not in the list.
    surplus: Vec<ObjectKey>,
    /// Objects that differ in the list.
    different: Vec<ObjectKey>,
}

/// The transformer of the store.
pub(super) type Transform<'t> = &'t (dyn Fn(Object) -> Result<Object, StoreError> + Send + Sync);

/// Compares the objects received up to a version with a list at exactly this version.
///
/// `options` are the options of the request for `items`; their limit applies to the list if the server kept
/// to it. Returns `Ok` without a request if no such list exists: after a continue token, or at version 0.
/// Repeats a failed list each second until it succeeds; returns `Ok` if the version has expired meanwhile.
pub(super) async fn check(
    list_watch: &dyn ListWatch,
    resource_version: &str,
    options: ListOptions,
    items: &[Object],
    transform: Transform<'_>,
) -> Result<(), Inconsistency> {
    if options.continue_token.is_some() || resource_version == "0" {
        return Ok(());
    }
    tracing::warn!("the consistency check is on and lists all objects once more");
    let applies = |limit: &NonZeroU32| options.resource_version != "0" || items.len() <= limit.get() as usize;
    let options = ListOptions {
        resource_version: resource_version.to_owned(),
        version_match: Some(VersionMatch::Exact),
        limit: options.limit.filter(applies),
        ..options
    };
    let listed = loop {
        match list_watch.list(options.clone(), &|item| item).await {
            Ok(page) => break page.items,
            Err(error) if error.is_expired() => {
                tracing::warn!(
                    "the consistency check is skipped, since its version has expired: {}",
                    in_full(&error)
                );
                return Ok(());
            }
            Err(error) => tracing::error!(
                "the list of the consistency check failed and is repeated: {}",
                in_full(&error)
            ),
        }
        tokio::time::sleep(PAUSE).await;
    };
    compare(listed.into_iter().filter_map(|item| transform(item).ok()), items)
}

fn compare(listed: impl Iterator<Item = Object>, items: &[Object]) -> Result<(), Inconsistency> {
    let mut by_uid: BTreeMap<(String, ObjectKey), &Object> =
        items.iter().map(|item| ((item.uid().to_owned(), item.key().clone()), item)).collect();
    let mut found = Inconsistency::default();
    for item in listed {
        match by_uid.remove(&(item.uid().to_owned(), item.key().clone())) {
            None => found.missing.push(item.key().clone()),
            Some(came) if value_of(came) != value_of(&item) => found.different.push(item.key().clone()),
            Some(_) => {}
        }
    }
    found.surplus = by_uid.into_keys().map(|(_, key)| key).collect();
    if found == Inconsistency::default() { Ok(()) } else { Err(found) }
}

/// The order of fields does not matter.
fn value_of(object: &Object) -> Value {
    serde_json::from_str(&object.json()).unwrap_or_default()
}

#[cfg(test)]
mod tests;

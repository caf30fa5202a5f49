//! Whether what streamed in is what a list brings (CD-01). For tests: it costs a list from etcd each time.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::time::Duration;

use serde_json::Value;

use super::StoreError;
use super::outcome::in_full;
use crate::list_watch::{ListOptions, ListWatch, VersionMatch};
use crate::names::ObjectKey;
use crate::object::Object;

/// How long to wait after a list that failed.
const PAUSE: Duration = Duration::from_secs(1);

/// What came in is not what the API server has. There is nothing to be done about it but to find out why.
#[derive(Clone, Debug, Default, PartialEq, Eq, thiserror::Error)]
#[error("missing {missing:?}, surplus {surplus:?}, different {different:?}")]
pub struct Inconsistency {
    /// What only a list brings.
    pub missing: Vec<ObjectKey>,
    /// What a list does not bring.
    pub surplus: Vec<ObjectKey>,
    /// What a list brings otherwise.
    pub different: Vec<ObjectKey>,
}

/// What a store would make of an object before it keeps it.
pub type Transform<'t> = &'t (dyn Fn(Object) -> Result<Object, StoreError> + Send + Sync);

/// Compares what came in up to a version with a list at exactly this version.
///
/// `options` are those with which `items` were asked for: their limit counts again if it was kept then. Nothing is asked, and
/// nothing found, where no such list can be asked for: behind a continue token, or at version 0. A list that fails is asked
/// for again each second, until it succeeds; if the server has forgotten the version meanwhile, nothing can be said.
pub async fn check(
    list_watch: &dyn ListWatch,
    resource_version: &str,
    options: ListOptions,
    items: &[Object],
    transform: Transform<'_>,
) -> Result<(), Inconsistency> {
    if options.continue_token.is_some() || resource_version == "0" {
        return Ok(());
    }
    tracing::warn!("the consistency check is on: one more list is sent to the API server");
    let is_kept = |limit: &NonZeroU32| options.resource_version != "0" || items.len() <= limit.get() as usize;
    let options = ListOptions {
        resource_version: resource_version.to_owned(),
        version_match: Some(VersionMatch::Exact),
        limit: options.limit.filter(is_kept),
        ..options
    };
    let listed = loop {
        match list_watch.list(options.clone(), &|item| item).await {
            Ok(page) => break page.items,
            Err(error) if error.is_expired() => {
                tracing::warn!("too late for the consistency check: {}", in_full(&error));
                return Ok(());
            }
            Err(error) => tracing::error!("the consistency check cannot list: {}", in_full(&error)),
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

/// The order of fields is nobody's concern.
fn value_of(object: &Object) -> Value {
    serde_json::from_str(&object.json()).unwrap_or_default()
}

#[cfg(test)]
mod tests;

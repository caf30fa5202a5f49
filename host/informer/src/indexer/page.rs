//! Reading sorted objects in pieces.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use crate::names::ObjectKey;
use crate::namespaces::Namespaces;
use crate::object::Object;
use crate::selector::LabelSelector;

/// How many objects are looked at under one hold of the lock.
const CHUNK: usize = 256;

/// Asks for the objects after a key that match, sorted by key.
///
/// Pages are no snapshot: an object that appears or goes between two of them may be in one or not. None is in two.
#[derive(Clone, Debug, Default)]
pub struct PageRequest {
    /// The last key of the page before; none for the first page. It need not exist any more.
    pub after: Option<ObjectKey>,
    /// How many objects at most. 0 gives an empty page.
    pub limit: usize,
    /// Where to look.
    pub namespaces: Namespaces,
    /// Which labels they have.
    pub selector: LabelSelector,
}

/// A page of objects.
#[derive(Clone, Debug, Default)]
pub struct Page {
    /// The objects, sorted by key.
    pub objects: Vec<Object>,
    /// What to ask for as `after`, if there may be more.
    pub next: Option<ObjectKey>,
}

/// Fills a page from chunks, matching the labels between them.
pub(super) fn fill(
    request: &PageRequest,
    mut chunk: impl FnMut(Option<&ObjectKey>, usize) -> Vec<Object>,
) -> Page {
    let mut objects = Vec::new();
    let mut after = request.after.clone();
    let is_everything = request.selector.is_everything();
    while objects.len() < request.limit {
        let wanted = if is_everything { CHUNK.min(request.limit - objects.len()) } else { CHUNK };
        let found = chunk(after.as_ref(), wanted);
        let is_last = found.len() < wanted;
        let n_found = found.len();
        for (position, object) in found.into_iter().enumerate() {
            after = Some(object.key().clone());
            if is_everything || request.selector.selects(&object) {
                objects.push(object);
                if objects.len() == request.limit {
                    let is_end = is_last && position + 1 == n_found;
                    return Page { objects, next: if is_end { None } else { after } };
                }
            }
        }
        if is_last {
            return Page { objects, next: None };
        }
    }
    Page { objects, next: after }
}

/// Returns the first objects after a key.
pub(super) fn chunk(
    after: Option<&ObjectKey>,
    namespaces: &Namespaces,
    limit: usize,
    objects: &BTreeMap<ObjectKey, Object>,
) -> Vec<Object> {
    let mut found = Vec::new();
    for (start, namespace) in ranges(after, namespaces) {
        let range = objects.range((start, Bound::Unbounded));
        let range =
            range.take_while(|(key, _)| namespace.is_none_or(|namespace| key.namespace() == namespace));
        found.extend(range.take(limit - found.len()).map(|(_, object)| object.clone()));
        if found.len() == limit {
            break;
        }
    }
    found
}

/// Returns the first keys after a key.
pub(super) fn key_chunk<'a>(
    after: Option<&ObjectKey>,
    namespaces: &Namespaces,
    limit: usize,
    keys: &'a BTreeSet<ObjectKey>,
) -> Vec<&'a ObjectKey> {
    let mut found = Vec::new();
    for (start, namespace) in ranges(after, namespaces) {
        let range = keys.range((start, Bound::Unbounded));
        let range = range.take_while(|key| namespace.is_none_or(|namespace| key.namespace() == namespace));
        found.extend(range.take(limit - found.len()));
        if found.len() == limit {
            break;
        }
    }
    found
}

/// Returns all keys in these namespaces.
pub(super) fn chunk_keys_of(
    namespaces: &Namespaces,
    objects: &BTreeMap<ObjectKey, Object>,
) -> Vec<ObjectKey> {
    let mut found = Vec::new();
    for (start, namespace) in ranges(None, namespaces) {
        let range = objects.range((start, Bound::Unbounded)).map(|(key, _)| key);
        let range = range.take_while(|key| namespace.is_none_or(|namespace| key.namespace() == namespace));
        found.extend(range.cloned());
    }
    found
}

/// Returns the namespaces that have objects, by skipping from one to the next.
pub(super) fn namespaces_of(objects: &BTreeMap<ObjectKey, Object>) -> Vec<String> {
    let mut namespaces = Vec::new();
    let mut start = Bound::Unbounded;
    while let Some((key, _)) = objects.range((start, Bound::Unbounded)).next() {
        let namespace = key.namespace().to_owned();
        // No namespace has a NUL in its name, so this is behind all keys of the namespace and before those of the next.
        start = Bound::Included(ObjectKey::new(format!("{namespace}\0"), ""));
        namespaces.push(namespace);
    }
    namespaces
}

/// Returns where to start, for each namespace that has to be looked at.
fn ranges<'a>(
    after: Option<&'a ObjectKey>,
    namespaces: &'a Namespaces,
) -> impl Iterator<Item = (Bound<ObjectKey>, Option<&'a str>)> {
    let everywhere = match namespaces {
        Namespaces::All => {
            Some((after.map_or(Bound::Unbounded, |after| Bound::Excluded(after.clone())), None))
        }
        Namespaces::Only(_) => None,
    };
    let each = match namespaces {
        Namespaces::All => None,
        Namespaces::Only(namespaces) => Some(namespaces.iter().filter_map(move |namespace| match after {
            Some(after) if after.namespace() > namespace.as_str() => None,
            Some(after) if after.namespace() == namespace => {
                Some((Bound::Excluded(after.clone()), Some(namespace.as_str())))
            }
            _ => Some((Bound::Included(ObjectKey::new(namespace, "")), Some(namespace.as_str()))),
        })),
    };
    everywhere.into_iter().chain(each.into_iter().flatten())
}

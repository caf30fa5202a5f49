//! Reading sorted objects in pieces.

use oarlock_label_selector::LabelSelector;

use crate::names::ObjectKey;
use crate::namespaces::Namespaces;
use crate::object::Object;

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

/// Fills a page from chunks, matching the labels between them. No more objects than `max_examined` are looked
/// at.
pub(super) fn fill(
    request: &PageRequest,
    max_examined: usize,
    mut chunk: impl FnMut(Option<&ObjectKey>, usize) -> Vec<(ObjectKey, Object)>,
) -> Page {
    let mut objects = Vec::new();
    let mut after = request.after.clone();
    let is_everything = request.selector.is_everything();
    let mut n_left = max_examined;
    while objects.len() < request.limit && n_left > 0 {
        let wanted = if is_everything { CHUNK.min(request.limit - objects.len()) } else { CHUNK };
        let wanted = wanted.min(n_left);
        let found = chunk(after.as_ref(), wanted);
        let is_last = found.len() < wanted;
        let n_found = found.len();
        n_left -= n_found;
        for (position, (key, object)) in found.into_iter().enumerate() {
            after = Some(key);
            if is_everything || object.is_selected_by(&request.selector) {
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

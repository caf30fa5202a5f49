//! Pages of sorted objects.

use oarlock_label_selector::LabelSelector;

use crate::names::ObjectKey;
use crate::namespaces::Namespaces;
use crate::object::Object;

/// How many objects are collected while the lock is held once.
const CHUNK: usize = 256;

/// A request for the matching objects after a key, sorted by key.
///
/// Pages are not a snapshot. An object that is added or removed between two pages may be missing or present.
/// No object is in two pages.
#[derive(Clone, Debug, Default)]
pub struct PageRequest {
    /// The last key of the previous page; `None` for the first page. Its object may have been removed.
    pub after: Option<ObjectKey>,
    /// The most objects in the page. 0 gives an empty page.
    pub limit: usize,
    /// The namespaces of the objects.
    pub namespaces: Namespaces,
    /// The labels of the objects.
    pub selector: LabelSelector,
}

/// A page of objects.
#[derive(Clone, Debug, Default)]
pub struct Page {
    /// The objects, sorted by key.
    pub objects: Vec<Object>,
    /// The value of `after` for the next page; `None` after the last page.
    pub next: Option<ObjectKey>,
}

/// Fills a page from chunks, and matches labels between the chunks. Examines at most `max_examined` objects.
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

//! Pages of rows, filled in slices.

use oarlock_informer::{indexer, object::ObjectKey};
use oarlock_plugin::contract::{Error, Page};

use super::{
    continue_token,
    rows::{self, Columns},
    slices::{LOOK, Slices},
};

/// A page ends before the row with which its text would pass this many bytes, but holds one row at least.
pub(super) const PAGE_BYTES: usize = 4 << 20;

/// How many objects are looked at under one hold of the cache's lock.
const STEP: usize = 32;

/// Fills a page with what `step` finds for a request, of which it looks at no more objects than it is told.
///
/// The page ends where it is full, where its text gets too long, or where enough text was read for one call;
/// its token goes on there.
pub(super) async fn fill(
    columns: &Columns,
    slices: &mut Slices,
    mut request: indexer::PageRequest,
    step: impl Fn(&indexer::PageRequest, usize) -> Result<indexer::Page, Error>,
) -> Result<Page, Error> {
    let wanted = request.limit;
    let mut rows = Vec::new();
    let mut length = 0;
    let mut last: Option<ObjectKey> = None;
    loop {
        request.limit = wanted - rows.len();
        let indexer::Page { objects, next } = step(&request, STEP)?;
        slices.worked(STEP * LOOK).await;
        for object in objects {
            let cut = |rows, last: &ObjectKey| Ok(Page { rows, continue_token: continue_token::after(last) });
            if let Some(last) = &last
                && !slices.may_read(columns.text_of(&object))
            {
                return cut(rows, last);
            }
            let row = match (columns.row(&object, slices).await, &last) {
                (Ok(row), _) => row,
                // The rows before it are answered; it is the first of the next page, and the error is of
                // that.
                (Err(_), Some(last)) => return cut(rows, last),
                (Err(error), None) => return Err(error),
            };
            length += rows::bytes(&row);
            if let Some(last) = &last
                && length > PAGE_BYTES
            {
                return cut(rows, last);
            }
            rows.push(row);
            last = Some(object.key().clone());
        }
        match next {
            None => return Ok(Page { rows, continue_token: String::new() }),
            Some(next) if rows.len() >= wanted => {
                return Ok(Page { rows, continue_token: continue_token::after(&next) });
            }
            Some(next) => request.after = Some(next),
        }
    }
}

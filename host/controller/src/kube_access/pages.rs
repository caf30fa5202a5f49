//! Fills pages of rows, in slices of work.

use oarlock_informer::{indexer, object::ObjectKey};
use oarlock_plugin::contract::{Error, Page};

use super::{
    continue_token,
    rows::{self, Columns},
    slices::{OBJECT, Slices},
};

/// The longest text of a page. A page has at least one row, however long.
pub(super) const PAGE_BYTES: usize = 4 << 20;

/// The number of objects that are read under one lock of the cache.
const STEP: usize = 32;

/// Fills a page with the objects that `step` returns. `step` gets a request and the number of objects that it
/// may read.
///
/// The page ends when it is full, when its text gets too long, or when the call read enough text. Its token
/// continues there.
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
        slices.worked(STEP * OBJECT).await;
        for object in objects {
            let cut = |rows, last: &ObjectKey| Ok(Page { rows, continue_token: continue_token::after(last) });
            if let Some(last) = &last
                && !slices.may_read(columns.text_of(&object))
            {
                return cut(rows, last);
            }
            let row = match (columns.row(&object, slices).await, &last) {
                (Ok(row), _) => row,
                // The rows before it are returned. The object is the first of the next page, which returns
                // the error.
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

//! Lists a whole resource, page by page (PG-01 to PG-04).

use std::num::NonZeroU32;

use crate::list_watch::{ApiError, ListOptions, ListWatch};
use crate::object::Object;

/// A whole list, put together from its pages.
#[derive(Debug)]
pub(crate) struct Listing {
    /// The first page's version; the following pages are of the same.
    pub(crate) resource_version: String,
    pub(crate) items: Vec<Object>,
    /// Whether a second page was asked for.
    pub(crate) is_paginated: bool,
}

/// Lists at `resource_version`, with pages of `limit` objects.
///
/// Each page's objects pass through `keep` as soon as the page is there, so that the caller can let go of what it already
/// has before the next page comes. When a later page has expired, everything is asked for once more in one request.
pub(crate) async fn list(
    list_watch: &dyn ListWatch,
    resource_version: &str,
    limit: Option<NonZeroU32>,
    keep: impl Fn(Object) -> Object,
) -> Result<Listing, ApiError> {
    let first = ListOptions { resource_version: resource_version.to_owned(), limit, continue_token: None };
    let page = list_watch.list(first).await?;
    let mut listing = Listing {
        resource_version: page.resource_version,
        items: page.items.into_iter().map(&keep).collect(),
        is_paginated: false,
    };
    let mut continue_token = page.continue_token;
    while let Some(token) = continue_token {
        listing.is_paginated = true;
        // The server takes no version beside a token (PG-03).
        let next = ListOptions { resource_version: String::new(), limit, continue_token: Some(token) };
        match list_watch.list(next).await {
            Ok(page) => {
                listing.items.extend(page.items.into_iter().map(&keep));
                continue_token = page.continue_token;
            }
            Err(error) if error.is_expired() => {
                listing.items = Vec::new();
                let whole =
                    ListOptions { resource_version: resource_version.to_owned(), limit: None, continue_token: None };
                let page = list_watch.list(whole).await?;
                listing.resource_version = page.resource_version;
                listing.items = page.items.into_iter().map(&keep).collect();
                return Ok(listing);
            }
            Err(error) => return Err(error),
        }
    }
    Ok(listing)
}

//! Lists a whole resource, page by page (PG-01 to PG-04).

use std::num::NonZeroU32;

use crate::list_watch::{ApiError, Keep, ListOptions, ListWatch};
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
/// When a later page has expired, everything is asked for once more in one request.
pub(crate) async fn list(
    list_watch: &dyn ListWatch,
    resource_version: &str,
    limit: Option<NonZeroU32>,
    keep: Keep<'_>,
) -> Result<Listing, ApiError> {
    let first =
        ListOptions { resource_version: resource_version.to_owned(), limit, ..ListOptions::default() };
    let page = list_watch.list(first, keep).await?;
    let mut listing =
        Listing { resource_version: page.resource_version, items: page.items, is_paginated: false };
    let mut continue_token = page.continue_token;
    while let Some(token) = continue_token {
        listing.is_paginated = true;
        // The server takes no version beside a token (PG-03).
        let next = ListOptions { limit, continue_token: Some(token), ..ListOptions::default() };
        match list_watch.list(next, keep).await {
            Ok(page) => {
                listing.items.extend(page.items);
                continue_token = page.continue_token;
            }
            Err(error) if error.is_expired() => {
                listing.items = Vec::new();
                let whole =
                    ListOptions { resource_version: resource_version.to_owned(), ..ListOptions::default() };
                let page = list_watch.list(whole, keep).await?;
                listing.resource_version = page.resource_version;
                listing.items = page.items;
                return Ok(listing);
            }
            Err(error) => return Err(error),
        }
    }
    Ok(listing)
}

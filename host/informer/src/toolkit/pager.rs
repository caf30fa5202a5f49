//! Lists a resource in pages (PG): as one list, or object by object (client-go: `tools/pager`).

mod each;

use std::num::NonZeroU32;

use crate::list_watch::{ApiError, ItemHook, ListOptions, ListPage, ListWatch, Undecodable};
use crate::object::Object;

pub use each::EachError;

/// The default number of objects per page (PG-01).
pub const DEFAULT_PAGE_SIZE: NonZeroU32 = NonZeroU32::MIN.saturating_add(499);

/// The configuration of a pager.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Objects per page, if the list options have no limit. None: all objects in one page (PG-01).
    pub page_size: Option<NonZeroU32>,
    /// The reaction to an expired continue token.
    pub on_expired: OnExpired,
    /// The number of buffered pages, beside the page in use and the page fetched last (PG-05). With 0, the
    /// pager fetches the second page while the caller uses the first, and the third one only when the caller
    /// uses the second.
    pub n_buffered_pages: usize,
}

/// The reaction to an expired continue token: the server has compacted the version of the list (PG-04).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnExpired {
    /// List again, in one page.
    #[default]
    ListWhole,
    /// Fail.
    Fail,
}

/// Lists in pages.
#[derive(Clone)]
pub struct Pager<'l> {
    list_watch: &'l dyn ListWatch,
    config: Config,
}

/// A complete list.
#[derive(Clone, Debug)]
pub struct Listing {
    /// The resourceVersion of the first page; all pages have the same.
    pub resource_version: String,
    /// The objects, in the server's order.
    pub items: Vec<Object>,
    /// The objects that cannot be decoded. They are not among the items.
    pub undecodable: Vec<Undecodable>,
    /// True if the pager has requested a second page.
    pub is_paginated: bool,
}

// === impl Config ===

impl Default for Config {
    fn default() -> Self {
        Self { page_size: Some(DEFAULT_PAGE_SIZE), on_expired: OnExpired::default(), n_buffered_pages: 10 }
    }
}

// === impl Pager ===

impl<'l> Pager<'l> {
    /// Returns a pager of a list-watch.
    pub fn new(list_watch: &'l dyn ListWatch, config: Config) -> Self {
        Self { list_watch, config }
    }

    /// Lists all objects. Calls `hook` with each object as soon as it is decoded; see [`ListWatch::list`].
    ///
    /// If the pager lists again after an expired token, it calls `hook` again with objects that it has
    /// already passed.
    pub async fn list(&self, options: ListOptions, hook: ItemHook<'_>) -> Result<Listing, ApiError> {
        let mut next = self.first(options.clone());
        let page = self.list_watch.list(next.clone(), hook).await?;
        let ListPage { resource_version, mut continue_token, items, undecodable } = page;
        let mut listing = Listing { resource_version, items, undecodable, is_paginated: false };
        while let Some(token) = continue_token {
            listing.is_paginated = true;
            next = following(next, token);
            match self.list_watch.list(next.clone(), hook).await {
                Ok(page) => {
                    listing.items.extend(page.items);
                    listing.undecodable.extend(page.undecodable);
                    continue_token = page.continue_token;
                }
                Err(error) if error.is_expired() && self.config.on_expired == OnExpired::ListWhole => {
                    // Frees the memory before the whole list arrives.
                    listing.items = Vec::new();
                    let whole = ListOptions { limit: None, continue_token: None, ..options };
                    let page = self.list_watch.list(whole, hook).await?;
                    let ListPage { resource_version, continue_token: _, items, undecodable } = page;
                    return Ok(Listing { resource_version, items, undecodable, is_paginated: true });
                }
                Err(error) => return Err(error),
            }
        }
        Ok(listing)
    }

    fn first(&self, options: ListOptions) -> ListOptions {
        ListOptions { limit: options.limit.or(self.config.page_size), ..options }
    }
}

/// Returns the options of the next page. The server rejects a version together with a token (PG-03).
fn following(options: ListOptions, token: String) -> ListOptions {
    ListOptions {
        resource_version: String::new(),
        version_match: None,
        continue_token: Some(token),
        ..options
    }
}

#[cfg(test)]
mod tests;

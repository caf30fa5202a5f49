//! Lists a whole resource, page by page (PG): all of it at once, or each object as its page comes.

mod each;

use std::num::NonZeroU32;

use crate::list_watch::{ApiError, ItemHook, ListOptions, ListPage, ListWatch, Undecodable};
use crate::object::Object;

pub use each::EachError;

/// The pages that a list comes in, unless configured otherwise (PG-01).
pub const DEFAULT_PAGE_SIZE: NonZeroU32 = NonZeroU32::MIN.saturating_add(499);

/// How a list is taken apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Objects per page, where the options of the list say nothing. None: everything in one (PG-01).
    pub page_size: Option<NonZeroU32>,
    /// What to do when a later page has expired.
    pub on_expired: OnExpired,
    /// How many pages may wait in the buffer, beside the one that is looked at and the one that was fetched last (PG-05): with 0, the
    /// second page is fetched while the first is looked at, and the third not before the second is.
    pub n_buffered_pages: usize,
}

/// What to do when a later page has expired, since the whole has changed too much meanwhile (PG-04).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnExpired {
    /// Ask for everything once more, in one.
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

/// A whole list, put together from its pages.
#[derive(Clone, Debug)]
pub struct Listing {
    /// The first page's version; the following pages are of the same.
    pub resource_version: String,
    /// The objects, in the server's order.
    pub items: Vec<Object>,
    /// The objects that cannot be decoded, which are not among the items.
    pub undecodable: Vec<Undecodable>,
    /// Whether a second page was asked for.
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
    /// Makes a pager that asks `list_watch`.
    pub fn new(list_watch: &'l dyn ListWatch, config: Config) -> Self {
        Self { list_watch, config }
    }

    /// Lists everything. Each object passes through `keep` as soon as it is there; see [`ListWatch::list`].
    ///
    /// Where everything has to be asked for once more, objects pass through `keep` once more.
    pub async fn list(&self, options: ListOptions, keep: ItemHook<'_>) -> Result<Listing, ApiError> {
        let mut next = self.first(options.clone());
        let page = self.list_watch.list(next.clone(), keep).await?;
        let ListPage { resource_version, mut continue_token, items, undecodable } = page;
        let mut listing = Listing { resource_version, items, undecodable, is_paginated: false };
        while let Some(token) = continue_token {
            listing.is_paginated = true;
            next = following(next, token);
            match self.list_watch.list(next.clone(), keep).await {
                Ok(page) => {
                    listing.items.extend(page.items);
                    listing.undecodable.extend(page.undecodable);
                    continue_token = page.continue_token;
                }
                Err(error) if error.is_expired() && self.config.on_expired == OnExpired::ListWhole => {
                    // Before everything comes again.
                    listing.items = Vec::new();
                    let whole = ListOptions { limit: None, continue_token: None, ..options };
                    let page = self.list_watch.list(whole, keep).await?;
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

/// Returns what to ask for behind a page. The server takes no version beside a token (PG-03).
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

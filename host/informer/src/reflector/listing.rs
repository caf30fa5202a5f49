//! The list: at which version, in which pages, and what when that version cannot be had (RL-20 to RL-29).

use std::num::NonZeroU32;
use std::sync::OnceLock;

use super::undecodable::UndecodableObjects;
use super::{Ended, Error, Running, StoreError};
use crate::list_watch::{ApiError, ListOptions};
use crate::object::Object;
use crate::pager::{self, Listing, Pager};

// === impl Running ===

impl Running<'_> {
    /// Lists everything and replaces the store's contents.
    pub(super) async fn list(&mut self) -> Result<(), Ended> {
        let resource_version = match &*self.resource_version {
            _ if self.is_last_version_unavailable => "",
            "" => "0",
            seen => seen,
        }
        .to_owned();
        let limit = match (self.config.page_size, &*resource_version) {
            (Some(page_size), _) => Some(page_size),
            (None, "" | "0") => Some(pager::DEFAULT_PAGE_SIZE),
            (None, _) if self.is_paginated => Some(pager::DEFAULT_PAGE_SIZE),
            // Not paged, so that the server may answer from its watch cache.
            (None, _) => None,
        };
        let mut result = self.list_at(&resource_version, limit).await;
        if let Err(error) = &result
            && (error.is_expired() || error.is_too_large_rv())
        {
            self.is_last_version_unavailable = true;
            result = self.list_at("", limit).await;
        }
        let (listing, refused) = result.map_err(|source| Error::List { what: self.description(), source })?;
        self.is_last_version_unavailable = false;
        self.is_paginated |= resource_version == "0" && listing.is_paginated;

        if let Some(refused) = refused {
            return Err(Error::Replace(refused).into());
        }
        let Listing { resource_version, items, undecodable, .. } = listing;
        let undecodable = UndecodableObjects::new(undecodable);
        self.replace(items, undecodable, resource_version).map_err(Error::Replace)?;
        Ok(())
    }

    /// Lists everything, and returns also why the store refused one of the objects, if it did: maybe one of a page that was asked for again,
    /// which is soon seen.
    async fn list_at(
        &self,
        resource_version: &str,
        limit: Option<NonZeroU32>,
    ) -> Result<(Listing, Option<StoreError>), ApiError> {
        let requests = self.requests();
        let refused = OnceLock::new();
        let keep = |item: Object| {
            self.status.note(|_| {});
            if refused.get().is_some() {
                return item;
            }
            match self.store.transform(item.clone()) {
                Ok(item) => self.store.intern(item),
                Err(error) => {
                    // The first one counts: nothing of this list will be kept.
                    let _ = refused.set(error);
                    item
                }
            }
        };
        let options =
            ListOptions { resource_version: resource_version.to_owned(), limit, ..ListOptions::default() };
        let pager = Pager::new(&requests, pager::Config { page_size: None, ..pager::Config::default() });
        let listing = pager.list(options, &keep).await?;
        Ok((listing, refused.into_inner()))
    }
}

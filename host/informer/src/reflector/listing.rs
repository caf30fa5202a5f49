//! Lists all objects: chooses the version, the page size and the fallback (RL-20 to RL-29).

use std::num::NonZeroU32;
use std::sync::OnceLock;

use super::outcome::Error;
use super::undecodable::UndecodableObjects;
use super::{ActiveReflector, StoreError};
use crate::list_watch::{ApiError, ListOptions};
use crate::object::Object;
use crate::toolkit::pager::{self, Listing, Pager};

// === impl ActiveReflector ===

impl ActiveReflector<'_> {
    /// Lists all objects and replaces the store's contents by them.
    pub(super) async fn list(&mut self) -> Result<(), Error> {
        let resource_version = match &*self.resource_version.text() {
            _ if self.is_last_version_unavailable => "",
            "" => "0",
            seen => seen,
        }
        .to_owned();
        let limit = match (self.config.page_size, &*resource_version) {
            (Some(page_size), _) => Some(page_size),
            (None, "" | "0") => Some(pager::DEFAULT_PAGE_SIZE),
            (None, _) if self.is_paginated => Some(pager::DEFAULT_PAGE_SIZE),
            // In one page, so that the server may answer from its watch cache.
            (None, _) => None,
        };
        let mut result = self.list_at(&resource_version, limit).await;
        if let Err(error) = &result
            && (error.is_expired() || error.is_too_large_rv())
        {
            self.is_last_version_unavailable = true;
            result = self.list_at("", limit).await;
        }
        let (listing, rejected) = match result {
            Ok(listed) => listed,
            Err(source) => return Err(Error::List { what: self.description(), source }),
        };
        self.is_last_version_unavailable = false;
        self.is_paginated |= resource_version == "0" && listing.is_paginated;

        let Listing { resource_version, items, undecodable, .. } = listing;
        if let Some(error) = rejected {
            return Err(Error::Replace(error));
        }
        let undecodable = UndecodableObjects::new(undecodable);
        self.replace(items, undecodable, &resource_version).map_err(Error::Replace)
    }

    /// Lists all objects, transformed and interned, and returns also the first error of the store's
    /// transformer, if any.
    ///
    /// The error does not end the list: the item may be of a page that the pager drops and requests again.
    async fn list_at(
        &self,
        resource_version: &str,
        limit: Option<NonZeroU32>,
    ) -> Result<(Listing, Option<StoreError>), ApiError> {
        let requests = self.requests();
        let rejected = OnceLock::new();
        let hook = |item: Object| {
            self.status.note_sign_of_life();
            if rejected.get().is_some() {
                return item;
            }
            match self.store.transform(item.clone()) {
                Ok(item) => self.store.intern(item),
                Err(error) => {
                    // The first error is enough: the store takes nothing of this list.
                    let _ = rejected.set(error);
                    item
                }
            }
        };
        let options =
            ListOptions { resource_version: resource_version.to_owned(), limit, ..ListOptions::default() };
        let pager = Pager::new(&requests, pager::Config { page_size: None, ..pager::Config::default() });
        let listing = pager.list(options, &hook).await?;
        Ok((listing, rejected.into_inner()))
    }
}

//! The access of a component that is asked for its description: none.

use std::time::Duration;

use async_trait::async_trait;

use crate::{
    contract::{
        Error, GroupVersionResource, Namespaces, ObjectKey, Page, PageRequest, PatchKind, Preconditions,
        Projection, Propagation, Row, WorkKey, Written,
    },
    kube_access::{CacheAccess, ClientAccess, EventsAccess, GuestEvent, Selectors, WorkQueueAccess},
};

/// Returns `not-synced` for every read of the cache, and `unavailable` for every other call.
pub(crate) struct NoAccess;

// === impl NoAccess ===

#[async_trait]
impl CacheAccess for NoAccess {
    async fn get(&self, _: &str, _: &ObjectKey, _: &Projection) -> Result<Row, Error> {
        Err(not_synced())
    }

    async fn list(
        &self,
        _: &str,
        _: &Namespaces,
        _: &str,
        _: &Projection,
        _: &PageRequest,
    ) -> Result<Page, Error> {
        Err(not_synced())
    }

    async fn by_index(
        &self,
        _: &str,
        _: &str,
        _: &Namespaces,
        _: &Projection,
        _: &PageRequest,
    ) -> Result<Page, Error> {
        Err(not_synced())
    }

    async fn index_values(&self, _: &str) -> Result<Vec<String>, Error> {
        Err(not_synced())
    }

    async fn has_synced(&self, _: &str) -> Result<bool, Error> {
        Err(not_synced())
    }

    async fn wait_until_seen(&self, _: &str, _: &str, _: Duration) -> Result<(), Error> {
        Err(not_synced())
    }
}

#[async_trait]
impl ClientAccess for NoAccess {
    async fn get(&self, _: &GroupVersionResource, _: &ObjectKey, _: &str) -> Result<String, Error> {
        Err(unavailable())
    }

    async fn list(
        &self,
        _: &GroupVersionResource,
        _: &Namespaces,
        _: Selectors<'_>,
        _: &Projection,
        _: &PageRequest,
    ) -> Result<Page, Error> {
        Err(unavailable())
    }

    async fn create(&self, _: &GroupVersionResource, _: &str, _: String) -> Result<Written, Error> {
        Err(unavailable())
    }

    async fn apply(
        &self,
        _: &GroupVersionResource,
        _: &ObjectKey,
        _: &str,
        _: String,
        _: bool,
        _: &Preconditions,
    ) -> Result<Written, Error> {
        Err(unavailable())
    }

    async fn patch(
        &self,
        _: &GroupVersionResource,
        _: &ObjectKey,
        _: &str,
        _: PatchKind,
        _: String,
        _: &Preconditions,
    ) -> Result<Written, Error> {
        Err(unavailable())
    }

    async fn replace(
        &self,
        _: &GroupVersionResource,
        _: &ObjectKey,
        _: &str,
        _: String,
    ) -> Result<Written, Error> {
        Err(unavailable())
    }

    async fn delete(
        &self,
        _: &GroupVersionResource,
        _: &ObjectKey,
        _: Propagation,
        _: Option<u32>,
        _: &Preconditions,
    ) -> Result<(), Error> {
        Err(unavailable())
    }
}

impl WorkQueueAccess for NoAccess {
    fn add(&self, _: WorkKey, _: Option<Duration>) -> Result<(), Error> {
        Err(unavailable())
    }
}

impl EventsAccess for NoAccess {
    fn emit(&self, _: GuestEvent) -> Result<(), Error> {
        Err(unavailable())
    }
}

fn not_synced() -> Error {
    Error::NotSynced("the cache cannot be read in describe".to_owned())
}

fn unavailable() -> Error {
    Error::Unavailable("this import is not available in describe".to_owned())
}

//! The access of a component that is asked for its description: none.

use std::time::Duration;

use async_trait::async_trait;

use crate::{
    contract::{
        Error, GroupVersionResource, Namespaces, ObjectKey, Page, PageRequest, PatchKind, Preconditions,
        Projection, Propagation, Row, WorkKey, Written,
    },
    kube_access::{GuestEvent, KubeAccess, Selectors},
};

/// Returns `not-synced` for every read of the cache, and `unavailable` for every other call.
pub(crate) struct NoAccess;

// === impl NoAccess ===

#[async_trait]
impl KubeAccess for NoAccess {
    async fn cache_get(&self, _: &str, _: &ObjectKey, _: &Projection) -> Result<Row, Error> {
        Err(not_synced())
    }

    async fn cache_list(
        &self,
        _: &str,
        _: &Namespaces,
        _: &str,
        _: &Projection,
        _: &PageRequest,
    ) -> Result<Page, Error> {
        Err(not_synced())
    }

    async fn cache_by_index(
        &self,
        _: &str,
        _: &str,
        _: &Namespaces,
        _: &Projection,
        _: &PageRequest,
    ) -> Result<Page, Error> {
        Err(not_synced())
    }

    async fn cache_index_values(&self, _: &str) -> Result<Vec<String>, Error> {
        Err(not_synced())
    }

    async fn cache_has_synced(&self, _: &str) -> Result<bool, Error> {
        Err(not_synced())
    }

    async fn cache_wait_until_seen(&self, _: &str, _: &str, _: Duration) -> Result<(), Error> {
        Err(not_synced())
    }

    async fn client_get(&self, _: &GroupVersionResource, _: &ObjectKey, _: &str) -> Result<String, Error> {
        Err(unavailable())
    }

    async fn client_list(
        &self,
        _: &GroupVersionResource,
        _: &Namespaces,
        _: Selectors<'_>,
        _: &Projection,
        _: &PageRequest,
    ) -> Result<Page, Error> {
        Err(unavailable())
    }

    async fn client_create(&self, _: &GroupVersionResource, _: &str, _: String) -> Result<Written, Error> {
        Err(unavailable())
    }

    async fn client_apply(
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

    async fn client_patch(
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

    async fn client_replace(
        &self,
        _: &GroupVersionResource,
        _: &ObjectKey,
        _: &str,
        _: String,
    ) -> Result<Written, Error> {
        Err(unavailable())
    }

    async fn client_delete(
        &self,
        _: &GroupVersionResource,
        _: &ObjectKey,
        _: Propagation,
        _: Option<u32>,
        _: &Preconditions,
    ) -> Result<(), Error> {
        Err(unavailable())
    }

    fn queue_add(&self, _: WorkKey, _: Option<Duration>) -> Result<(), Error> {
        Err(unavailable())
    }

    fn event_emit(&self, _: GuestEvent) -> Result<(), Error> {
        Err(unavailable())
    }
}

fn not_synced() -> Error {
    Error::NotSynced("the cache cannot be read in describe".to_owned())
}

fn unavailable() -> Error {
    Error::Unavailable("this import is not available in describe".to_owned())
}

//! The source of the informers' objects: the API server, or a fake in tests.

use std::sync::Arc;

use async_trait::async_trait;
use oarlock_informer::list_watch::api::{self, ApiListWatch};
use oarlock_informer::list_watch::transport::Outages;
use oarlock_informer::reflector::ConsistencyCheck;
use oarlock_informer::{
    GroupVersionResource,
    list_watch::ListWatch,
    object::{Content, TypeMeta},
};

use super::prunings::Prunings;
use crate::discovery::Discovery;

/// Discovers resources, and lists and watches them.
#[async_trait]
pub trait ResourceSource: Send + Sync + 'static {
    /// Returns the type of a resource's objects; none if it is not served. The error is a message for people.
    async fn type_of(&self, resource: &GroupVersionResource) -> Result<Option<TypeMeta>, String>;

    /// Returns the other versions in which a resource is served, such as `apps/v1`. The error is a message
    /// for people.
    async fn other_versions(&self, resource: &GroupVersionResource) -> Result<Vec<String>, String> {
        let _ = resource;
        Ok(Vec::new())
    }

    /// Returns the resource of the same group and version whose name is the closest, as far as is known.
    fn similar(&self, resource: &GroupVersionResource) -> Option<GroupVersionResource> {
        let _ = resource;
        None
    }

    /// Returns the list and watch of a served resource, for full objects or metadata.
    fn list_watch(
        &self,
        resource: &GroupVersionResource,
        type_meta: &TypeMeta,
        content: Content,
    ) -> Arc<dyn ListWatch>;

    /// Returns what ends the back-off of reflectors after an outage.
    fn outages(&self) -> Outages {
        Outages::default()
    }

    /// Returns whether informers compare a streamed initial list with a list request. For tests.
    fn consistency_check(&self) -> ConsistencyCheck {
        ConsistencyCheck::Off
    }
}

/// The API server.
pub struct ApiSource {
    client: kube::Client,
    discovery: Arc<Discovery>,
    prunings: Prunings,
    outages: Outages,
    consistency_check: ConsistencyCheck,
}

// === impl ApiSource ===

impl ApiSource {
    /// Makes the source that uses `client`, with the host's own account.
    #[must_use]
    pub fn new(
        client: kube::Client,
        discovery: Arc<Discovery>,
        prunings: Prunings,
        outages: Outages,
        consistency_check: ConsistencyCheck,
    ) -> Self {
        Self { client, discovery, prunings, outages, consistency_check }
    }
}

#[async_trait]
impl ResourceSource for ApiSource {
    async fn type_of(&self, resource: &GroupVersionResource) -> Result<Option<TypeMeta>, String> {
        // The cache of the discovery may be older than the deletion of the resource.
        let served =
            self.discovery.resolve_uncached(resource).await.map_err(|error| crate::chain::text(&error))?;
        Ok(served.map(|served| TypeMeta::new(served.api_version, served.kind)))
    }

    async fn other_versions(&self, resource: &GroupVersionResource) -> Result<Vec<String>, String> {
        self.discovery.other_versions(resource).await.map_err(|error| crate::chain::text(&error))
    }

    fn similar(&self, resource: &GroupVersionResource) -> Option<GroupVersionResource> {
        self.discovery.similar(resource)
    }

    fn list_watch(
        &self,
        resource: &GroupVersionResource,
        type_meta: &TypeMeta,
        content: Content,
    ) -> Arc<dyn ListWatch> {
        let config = api::Config::new(resource.clone(), Some(type_meta.clone()));
        let config = api::Config { content, pruning: self.prunings.of(resource), ..config };
        Arc::new(ApiListWatch::new(self.client.clone(), config))
    }

    fn outages(&self) -> Outages {
        self.outages.clone()
    }

    fn consistency_check(&self) -> ConsistencyCheck {
        self.consistency_check
    }
}

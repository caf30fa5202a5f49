//! The sources of the informers of a factory.

use std::sync::Arc;

use crate::api_list_watch::{self, ApiListWatch};
use crate::list_watch::ListWatch;
use crate::names::GroupVersionResource;
use crate::object::{Content, Pruning};

/// Creates the [`ListWatch`] of each informer. Functions implement it too.
pub trait Source: Send + Sync {
    /// Returns the list-watch of a resource, for one namespace or for all.
    fn list_watch(&self, resource: &GroupVersionResource, namespace: Option<&str>) -> Arc<dyn ListWatch>;
}

/// Lists and watches an API server.
#[derive(Clone)]
pub struct ApiSource {
    client: kube::Client,
    /// The content of the objects: full or metadata.
    pub content: Content,
    /// The fields that are removed from the objects.
    pub pruning: Pruning,
}

// === impl ApiSource ===

impl ApiSource {
    /// Returns a source of full objects with the default pruning. The client should not retry;
    /// [`transport::client`](crate::list_watch::transport::client) returns one.
    #[must_use]
    pub fn new(client: kube::Client) -> Self {
        Self { client, content: Content::Full, pruning: Pruning::default() }
    }

    /// Returns a source of metadata: the API server sends `PartialObjectMetadata`, and the objects have that
    /// type (GI-01).
    #[must_use]
    pub fn metadata(client: kube::Client) -> Self {
        Self { content: Content::Metadata, ..Self::new(client) }
    }
}

impl Source for ApiSource {
    fn list_watch(&self, resource: &GroupVersionResource, namespace: Option<&str>) -> Arc<dyn ListWatch> {
        let Self { client, content, pruning } = self;
        let config = api_list_watch::Config {
            namespace: namespace.map(str::to_owned),
            content: *content,
            pruning: pruning.clone(),
            ..api_list_watch::Config::new(resource.clone(), None)
        };
        Arc::new(ApiListWatch::new(client.clone(), config))
    }
}

impl<F: Fn(&GroupVersionResource, Option<&str>) -> Arc<dyn ListWatch> + Send + Sync> Source for F {
    fn list_watch(&self, resource: &GroupVersionResource, namespace: Option<&str>) -> Arc<dyn ListWatch> {
        self(resource, namespace)
    }
}

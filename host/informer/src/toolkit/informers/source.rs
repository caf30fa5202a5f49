//! Where a factory's informers get their objects from.

use std::sync::Arc;

use crate::api_list_watch::{self, ApiListWatch};
use crate::list_watch::ListWatch;
use crate::names::GroupVersionResource;
use crate::object::{Content, Pruning};

/// Makes what the informer of a resource lists and watches with. Functions are sources as well.
pub trait Source: Send + Sync {
    /// Makes it, for one namespace or for all.
    fn list_watch(&self, resource: &GroupVersionResource, namespace: Option<&str>) -> Arc<dyn ListWatch>;
}

/// Lists and watches an API server.
#[derive(Clone)]
pub struct ApiSource {
    client: kube::Client,
    /// How much of the objects is asked for.
    pub content: Content,
    /// What is left out of the objects.
    pub pruning: Pruning,
}

// === impl ApiSource ===

impl ApiSource {
    /// Takes objects whole, but for what no controller reads. The client should retry nothing; [`transport`](crate::transport) makes one.
    #[must_use]
    pub fn new(client: kube::Client) -> Self {
        Self { client, content: Content::Full, pruning: Pruning::default() }
    }

    /// Takes the metadata alone, as `PartialObjectMetadata`: the API server leaves out the rest.
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

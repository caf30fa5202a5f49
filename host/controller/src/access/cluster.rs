//! What the gate needs to know about the cluster beside rights: its namespaces, and the scope of resources.

use std::collections::BTreeSet;

use async_trait::async_trait;
use oarlock_informer::GroupVersionResource;

use crate::discovery::{self, Discovery};

/// The names of the existing namespaces.
pub(crate) trait KnownNamespaces: Send + Sync {
    /// Returns all names; `None` while they are not known yet.
    fn names(&self) -> Option<BTreeSet<String>>;

    /// Returns whether a namespace exists; `None` while that is not known.
    fn has(&self, name: &str) -> Option<bool> {
        self.names().map(|names| names.contains(name))
    }
}

/// The scope of resources.
#[async_trait]
pub(crate) trait Scopes: Send + Sync {
    /// Returns whether a resource is cluster-scoped. One that the API server does not serve is not.
    async fn is_cluster_scoped(&self, resource: &GroupVersionResource) -> Result<bool, discovery::Error>;
}

// === impl Discovery ===

#[async_trait]
impl Scopes for Discovery {
    async fn is_cluster_scoped(&self, resource: &GroupVersionResource) -> Result<bool, discovery::Error> {
        Ok(self.is_namespaced(resource).await? == Some(false))
    }
}

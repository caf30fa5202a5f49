//! Reads of one resource's cache, with the answers that a live client would give.

use crate::indexer::Indexer;
use crate::names::{GroupVersionResource, ObjectKey};
use crate::object::Object;
use crate::selector::LabelSelector;

/// Reads the cache of one resource. What it returns is shared and may be behind the API server.
#[derive(Clone)]
pub struct Lister {
    indexer: Indexer,
    resource: GroupVersionResource,
}

/// The cache does not hold the object.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{} {name:?} not found", group_resource(resource))]
pub struct NotFound {
    /// The resource that was looked in.
    pub resource: GroupVersionResource,
    /// The name, without namespace, that was looked for.
    pub name: String,
}

// === impl Lister ===

impl Lister {
    /// Makes a lister over a cache.
    #[must_use]
    pub fn new(indexer: Indexer, resource: GroupVersionResource) -> Self {
        Self { indexer, resource }
    }

    /// Returns the objects of a namespace, or of all, whose labels match, sorted by key.
    #[must_use]
    pub fn list(&self, namespace: Option<&str>, selector: &LabelSelector) -> Vec<Object> {
        self.indexer.list(namespace, selector)
    }

    /// Returns the object of that key.
    pub fn get(&self, key: &ObjectKey) -> Result<Object, NotFound> {
        self.indexer
            .get(key)
            .ok_or_else(|| NotFound { resource: self.resource.clone(), name: key.name().to_owned() })
    }

    /// Returns the cache itself.
    #[must_use]
    pub fn indexer(&self) -> &Indexer {
        &self.indexer
    }
}

/// `deployments.apps`, or `pods` in the core group.
fn group_resource(resource: &GroupVersionResource) -> String {
    match &*resource.group {
        "" => resource.resource.clone(),
        group => format!("{}.{group}", resource.resource),
    }
}

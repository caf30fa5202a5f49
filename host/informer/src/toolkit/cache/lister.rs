//! Reads of the cache of one resource, with the errors of an API client.

mod selecting;

use oarlock_label_selector::LabelSelector;

use crate::indexer::Indexer;
use crate::list_watch::Status;
use crate::names::{GroupVersionResource, ObjectKey};
use crate::object::Object;

pub use selecting::SelectingError;

/// Reads the cache of one resource. The objects are shared with the cache, which may be behind the API
/// server.
#[derive(Clone)]
pub struct Lister {
    indexer: Indexer,
    resource: GroupVersionResource,
    form: Form,
}

/// Reads the cache of one resource in one namespace, or in all.
#[derive(Clone)]
pub struct NamespaceLister {
    lister: Lister,
    namespace: String,
}

/// The cache does not hold the object.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{} {name:?} not found", group_resource(resource))]
pub struct NotFound {
    /// The resource of the cache; for a typed lister, the kind in lower case replaces its name.
    pub resource: GroupVersionResource,
    /// The name of the object, without its namespace.
    pub name: String,
}

/// client-go's two kinds of listers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Generic,
    Typed,
}

// === impl Lister ===

impl Lister {
    /// Returns a lister of a cache.
    #[must_use]
    pub fn new(indexer: Indexer, resource: GroupVersionResource) -> Self {
        Self { indexer, resource, form: Form::Generic }
    }

    /// Returns a lister like those that client-go generates for a type: errors name the kind in lower case
    /// (`pod "a" not found`), and an empty namespace means a cluster-scoped object.
    #[must_use]
    pub fn typed(indexer: Indexer, resource: GroupVersionResource, kind: &str) -> Self {
        let resource = GroupVersionResource { resource: kind.to_lowercase(), ..resource };
        Self { indexer, resource, form: Form::Typed }
    }

    /// Returns the objects of one namespace, or of all, that match the selector, sorted by key.
    #[must_use]
    pub fn list(&self, namespace: Option<&str>, selector: &LabelSelector) -> Vec<Object> {
        if selector.is_nothing() { Vec::new() } else { self.indexer.list(namespace, selector) }
    }

    /// Returns the object with this key.
    ///
    /// # Errors
    ///
    /// When the cache does not have it.
    pub fn get(&self, key: &ObjectKey) -> Result<Object, NotFound> {
        self.indexer.get(key).ok_or_else(|| self.not_found(key.name()))
    }

    /// Returns a lister of one namespace, or of all if the namespace is empty.
    #[must_use]
    pub fn namespace(&self, namespace: impl Into<String>) -> NamespaceLister {
        NamespaceLister { lister: self.clone(), namespace: namespace.into() }
    }

    /// Returns the cache itself.
    #[must_use]
    pub fn indexer(&self) -> &Indexer {
        &self.indexer
    }

    fn not_found(&self, name: &str) -> NotFound {
        NotFound { resource: self.resource.clone(), name: name.to_owned() }
    }
}

// === impl NamespaceLister ===

impl NamespaceLister {
    /// Returns the objects of the namespace that match the selector, sorted by key.
    #[must_use]
    pub fn list(&self, selector: &LabelSelector) -> Vec<Object> {
        let namespace = Some(&*self.namespace).filter(|namespace| !namespace.is_empty());
        self.lister.list(namespace, selector)
    }

    /// Returns the object with this name.
    ///
    /// # Errors
    ///
    /// When the cache does not have it, and always for a generic lister of all namespaces: a name alone is no
    /// key.
    pub fn get(&self, name: &str) -> Result<Object, NotFound> {
        if self.namespace.is_empty() && self.lister.form == Form::Generic {
            return Err(self.lister.not_found(name));
        }
        self.lister.get(&ObjectKey::new(&self.namespace, name))
    }
}

// === impl NotFound ===

impl NotFound {
    /// Returns the status that the API server would answer.
    #[must_use]
    pub fn status(&self) -> Status {
        let message = self.to_string();
        Status { code: 404, reason: "NotFound".to_owned(), message, ..Status::default() }
    }
}

/// `deployments.apps`, or `pods` in the core group.
fn group_resource(resource: &GroupVersionResource) -> String {
    match &*resource.group {
        "" => resource.resource.clone(),
        group => format!("{}.{group}", resource.resource),
    }
}

#[cfg(test)]
mod tests;

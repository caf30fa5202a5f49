//! What a plugin reads from the cache, and what it requests from the API server.

use oarlock_sdk_bindings::exports::oarlock::plugin::metadata as wit;

use crate::{Content, GroupVersionResource, Lister, Namespaces, Resource};

/// A lister of whole objects in all namespaces that the account may read, until it is restricted.
///
/// ```
/// use oarlock_sdk::{Description, Lister, Read};
///
/// const SECRETS: Lister = Lister::new("secrets", "", "v1", "secrets");
///
/// let secrets = Read::from(SECRETS).namespace("default").wakes();
/// let description = Description::new("example", "0.1.0").read(secrets);
/// # drop(description);
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct Read(pub(crate) wit::Read);

/// Requests with these verbs, in all namespaces until they are restricted: writes, and live reads of
/// resources that are declared nowhere else. `oarlock rbac` prints a Role for them.
#[derive(Clone, Debug)]
#[must_use]
pub struct Request(pub(crate) wit::Request);

// === impl Read ===

impl Read {
    /// Has changes of what was read queue keys again: after a change of what the last run of
    /// [`crate::Reconciler::reconcile`] for a key read through the lister, that key is reconciled again.
    pub fn wakes(mut self) -> Self {
        self.0.wakes = true;
        self
    }

    /// Restricts it to one namespace.
    pub fn namespace(mut self, namespace: &str) -> Self {
        self.0.namespaces = Namespaces::One(namespace.to_owned());
        self
    }

    /// Declares that the plugin needs only `apiVersion`, `kind` and `metadata`.
    pub fn metadata_only(mut self) -> Self {
        self.0.content = Content::Metadata;
        self
    }

    /// Has the lister read another resource, one that only the configuration names.
    pub fn target(mut self, target: GroupVersionResource) -> Self {
        self.0.target = target;
        self
    }
}

impl From<Lister> for Read {
    fn from(lister: Lister) -> Self {
        Self(wit::Read {
            name: lister.name().to_owned(),
            target: lister.gvr(),
            namespaces: Namespaces::All,
            content: Content::Full,
            wakes: false,
        })
    }
}

// === impl Request ===

impl Request {
    /// Returns requests with verbs of Kubernetes, such as `get`, `list`, `create`, `patch`, `delete`. An
    /// apply needs `patch`, and `create` if the object may not exist.
    pub fn new(target: GroupVersionResource, verbs: &[&str]) -> Self {
        Self(wit::Request {
            target,
            namespaces: Namespaces::All,
            verbs: verbs.iter().map(|&verb| verb.to_owned()).collect(),
            subresource: String::new(),
        })
    }

    /// Returns requests for the resource that a type stands for.
    pub fn of<T: Resource>(verbs: &[&str]) -> Self {
        Self::new(T::gvr(), verbs)
    }

    /// Restricts them to one namespace.
    pub fn namespace(mut self, namespace: &str) -> Self {
        self.0.namespaces = Namespaces::One(namespace.to_owned());
        self
    }

    /// Has them concern a subresource, such as `status`.
    pub fn subresource(mut self, name: &str) -> Self {
        name.clone_into(&mut self.0.subresource);
        self
    }
}

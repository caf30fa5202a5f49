//! Listers and indices: reads of the cache that all plugins share. They send no request to the API server.

use std::time::Duration;

use oarlock_sdk_bindings::exports::oarlock::plugin::metadata as wit;

use crate::failure::milliseconds;
use crate::imports::cache;
use crate::rows::{FromRow, Query, Rows};
use crate::{Error, GroupVersionResource, Namespaces, ObjectKey, Read, Resource, gvr};

/// Reads one resource from the cache. A constant, which [`crate::Description::read`] declares.
///
/// ```
/// use oarlock_sdk::{Description, Failure, Fields, Lister, Namespaces, ObjectRef};
///
/// const PODS: Lister = Lister::new("pods", "", "v1", "pods");
///
/// #[derive(Fields)]
/// struct OnNode {
///     #[field("/spec/nodeName")]
///     node: Option<String>,
/// }
///
/// fn describe() -> Result<Description, String> {
///     Ok(Description::new("example", "0.1.0").read(PODS))
/// }
///
/// fn waiting(namespace: &str) -> Result<Vec<ObjectRef>, Failure> {
///     let mut waiting = vec![];
///     for row in PODS.list::<(ObjectRef, OnNode)>(&Namespaces::One(namespace.to_owned()), "app=web") {
///         let (pod, OnNode { node }) = row?;
///         if node.is_none() {
///             waiting.push(pod);
///         }
///     }
///     Ok(waiting)
/// }
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Lister {
    name: &'static str,
    /// Group, version and plural name.
    target: [&'static str; 3],
}

/// Finds objects of a lister by a value. A constant, which [`crate::Description::index`] declares.
///
/// ```
/// use oarlock_sdk::{Failure, Index, Lister, ObjectRef};
///
/// const PODS: Lister = Lister::new("pods", "", "v1", "pods");
/// const BY_NODE: Index = PODS.index_by_pointer("pods-by-node", "/spec/nodeName");
///
/// fn n_pods_on(node: &str) -> Result<usize, Failure> {
///     let pods: Vec<ObjectRef> = BY_NODE.get(node).collect::<Result<_, _>>()?;
///     Ok(pods.len())
/// }
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Index {
    name: &'static str,
    lister: &'static str,
    source: Source,
}

#[derive(Clone, Copy, Debug)]
enum Source {
    Label(&'static str),
    OwnerUid,
    Pointer(&'static str),
}

// === impl Lister ===

impl Lister {
    /// Returns a lister of a resource. The group of the core resources is the empty string.
    #[must_use]
    pub const fn new(
        name: &'static str,
        group: &'static str,
        version: &'static str,
        plural: &'static str,
    ) -> Self {
        Self { name, target: [group, version, plural] }
    }

    /// Returns a lister of the resource that a type stands for.
    #[must_use]
    pub const fn of<T: Resource>(name: &'static str) -> Self {
        Self::new(name, T::GROUP, T::VERSION, T::PLURAL)
    }

    /// Returns the resource.
    #[must_use]
    pub fn gvr(&self) -> GroupVersionResource {
        let [group, version, plural] = self.target;
        gvr(group, version, plural)
    }

    /// Returns one object, or `None` if the cache has no object of that name.
    ///
    /// # Errors
    ///
    /// Those of `cache.get` in the contract, except `not-found`.
    pub fn get<V: FromRow>(&self, key: &ObjectKey) -> Result<Option<V>, Error> {
        match cache::get(self.name, key, &V::projection()) {
            Ok(row) => V::from_row(row).map(Some),
            Err(Error::NotFound(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Returns the objects whose labels match a selector in the syntax of Kubernetes; all for the empty one.
    ///
    /// The iterator returns the errors of `cache.list` in the contract.
    pub fn list<V: FromRow>(&self, namespaces: &Namespaces, selector: &str) -> Rows<V> {
        let (namespaces, selector) = (namespaces.clone(), selector.to_owned());
        Rows::new(Query::List { lister: self.name, namespaces, selector })
    }

    /// Returns whether the cache contains the whole first list.
    ///
    /// # Errors
    ///
    /// Those of `cache.has-synced` in the contract.
    pub fn has_synced(&self) -> Result<bool, Error> {
        cache::has_synced(self.name)
    }

    /// Waits at most `timeout` (at most 5 s) until the cache has processed the resourceVersion that a write
    /// returned.
    ///
    /// # Errors
    ///
    /// `timeout` if it has not, and the other errors of `cache.wait-until-seen` in the contract.
    pub fn wait_until_seen(&self, resource_version: &str, timeout: Duration) -> Result<(), Error> {
        cache::wait_until_seen(self.name, resource_version, milliseconds(timeout))
    }

    /// Declares it as a lister that wakes: after a change of what the last run of
    /// [`crate::Reconciler::reconcile`] for a key read through it, that key is reconciled again.
    pub fn wakes(self) -> Read {
        Read::from(self).wakes()
    }

    /// Returns an index by the value of a label.
    #[must_use]
    pub const fn index_by_label(&self, name: &'static str, label: &'static str) -> Index {
        Index { name, lister: self.name, source: Source::Label(label) }
    }

    /// Returns an index by the uids of the owners.
    #[must_use]
    pub const fn index_by_owner(&self, name: &'static str) -> Index {
        Index { name, lister: self.name, source: Source::OwnerUid }
    }

    /// Returns an index by the scalar at a JSON pointer, in which `*` stands for every element of a list.
    #[must_use]
    pub const fn index_by_pointer(&self, name: &'static str, pointer: &'static str) -> Index {
        Index { name, lister: self.name, source: Source::Pointer(pointer) }
    }

    pub(crate) fn name(&self) -> &'static str {
        self.name
    }
}

// === impl Index ===

impl Index {
    /// Returns the objects that have a value, in all namespaces that the account may read.
    ///
    /// The iterator returns the errors of `cache.by-index` in the contract.
    pub fn get<V: FromRow>(&self, value: &str) -> Rows<V> {
        self.get_in(&Namespaces::All, value)
    }

    /// Returns the objects in these namespaces that have a value.
    pub fn get_in<V: FromRow>(&self, namespaces: &Namespaces, value: &str) -> Rows<V> {
        let (value, namespaces) = (value.to_owned(), namespaces.clone());
        Rows::new(Query::Index { index: self.name, value, namespaces })
    }

    /// Returns the values of all objects, sorted, without repetitions.
    ///
    /// # Errors
    ///
    /// Those of `cache.index-values` in the contract.
    pub fn values(&self) -> Result<Vec<String>, Error> {
        cache::index_values(self.name)
    }
}

impl From<Index> for wit::Index {
    fn from(index: Index) -> Self {
        let source = match index.source {
            Source::Label(label) => wit::IndexSource::Label(label.to_owned()),
            Source::OwnerUid => wit::IndexSource::OwnerUid,
            Source::Pointer(pointer) => wit::IndexSource::Pointer(pointer.to_owned()),
        };
        Self { name: index.name.to_owned(), lister: index.lister.to_owned(), source }
    }
}

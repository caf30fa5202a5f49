//! Names and metadata of objects, as in kube-rs.

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

use crate::{ObjectKey, OwnerReference, Resource, key};

/// Names an object of the resource `K`. It need not exist.
pub struct ObjectRef<K> {
    /// The object's name.
    pub name: String,
    /// The object's namespace; `None` for a cluster-scoped one.
    pub namespace: Option<String>,
    resource: PhantomData<fn() -> K>,
}

/// Short functions of kube-rs.
pub trait ResourceExt {
    /// Returns the name; the empty text for an object without one.
    fn name_any(&self) -> String;

    /// Returns the namespace; `None` for a cluster-scoped object.
    fn namespace(&self) -> Option<String>;

    /// Returns the labels.
    fn labels(&self) -> &BTreeMap<String, String>;

    /// Returns the annotations.
    fn annotations(&self) -> &BTreeMap<String, String>;

    /// Returns the finalizers.
    fn finalizers(&self) -> &[String];

    /// Returns the reference that makes this object the controller owner of another one.
    fn controller_owner_ref(&self, _: &()) -> Option<OwnerReference>;
}

// === impl ObjectRef ===

impl<K: Resource> ObjectRef<K> {
    /// Names a cluster-scoped object.
    #[must_use]
    pub fn new(name: &str) -> Self {
        Self { name: name.to_owned(), namespace: None, resource: PhantomData }
    }

    /// Returns the name in a namespace.
    #[must_use]
    pub fn within(self, namespace: &str) -> Self {
        Self { namespace: Some(namespace.to_owned()), ..self }
    }

    /// Returns the name of an object.
    #[must_use]
    pub fn from_obj(object: &K) -> Self {
        Self { name: object.name_any(), namespace: object.namespace(), resource: PhantomData }
    }

    pub(super) fn into_key(self) -> ObjectKey {
        key(self.namespace.unwrap_or_default(), self.name)
    }
}

impl<K> Clone for ObjectRef<K> {
    fn clone(&self) -> Self {
        Self { name: self.name.clone(), namespace: self.namespace.clone(), resource: PhantomData }
    }
}

impl<K> PartialEq for ObjectRef<K> {
    fn eq(&self, other: &Self) -> bool {
        (&self.name, &self.namespace) == (&other.name, &other.namespace)
    }
}

impl<K> Eq for ObjectRef<K> {}

impl<K: Resource> fmt::Debug for ObjectRef<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}/{}", K::PLURAL, self.namespace.as_deref().unwrap_or_default(), self.name)
    }
}

// === impl ResourceExt ===

impl<K: Resource> ResourceExt for K {
    fn name_any(&self) -> String {
        self.key().name
    }

    fn namespace(&self) -> Option<String> {
        Some(self.key().namespace).filter(|namespace| !namespace.is_empty())
    }

    fn labels(&self) -> &BTreeMap<String, String> {
        self.named().labels()
    }

    fn annotations(&self) -> &BTreeMap<String, String> {
        self.named().annotations()
    }

    fn finalizers(&self) -> &[String] {
        self.named().finalizers()
    }

    fn controller_owner_ref(&self, _: &()) -> Option<OwnerReference> {
        self.controller_reference()
    }
}

//! What things are called: object keys, resources and kinds.
//!
//! Not here: anything that looks inside an object; that is `object`.

use std::fmt;
use std::str::FromStr;
use std::sync::{Arc, LazyLock};

/// Names one object of a resource: its namespace and its name.
///
/// Ordered by namespace, then name; cheap to clone. A cluster-scoped object has the empty namespace.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ObjectKey {
    namespace: Arc<str>,
    name: Arc<str>,
}

/// Names a resource the way its REST path does: `apps`, `v1`, `deployments`.
///
/// The core group is the empty string. `Display` and `FromStr` use `apps/v1/deployments` and, for the core group,
/// `v1/pods`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GroupVersionResource {
    /// API group, such as `apps`; empty for the core group.
    pub group: String,
    /// API version, such as `v1`.
    pub version: String,
    /// The resource's plural, lower-case name, such as `configmaps`.
    pub resource: String,
}

/// What an object says it is: its `apiVersion` and `kind`.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TypeMeta {
    /// `v1`, `apps/v1` …
    pub api_version: Arc<str>,
    /// `Pod`, `Deployment` …
    pub kind: Arc<str>,
}

/// A text that is not the name of anything.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// A key is `name` or `namespace/name`, nothing longer.
    #[error("unexpected key format: {0:?}")]
    Key(String),
    /// A resource is `version/resource` or `group/version/resource`.
    #[error("unexpected resource format: {0:?}, expected version/resource or group/version/resource")]
    Resource(String),
}

static NO_NAMESPACE: LazyLock<Arc<str>> = LazyLock::new(|| Arc::from(""));

// === impl ObjectKey ===

impl ObjectKey {
    /// Makes the key of an object in `namespace`, which is empty for cluster-scoped objects.
    pub fn new(namespace: impl AsRef<str>, name: impl AsRef<str>) -> Self {
        let namespace = namespace.as_ref();
        let namespace = if namespace.is_empty() { NO_NAMESPACE.clone() } else { Arc::from(namespace) };
        Self { namespace, name: Arc::from(name.as_ref()) }
    }

    /// Returns the namespace, empty for cluster-scoped objects.
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// Returns the name.
    pub fn name(&self) -> &str {
        &self.name
    }
}

/// `namespace/name`, or `name` alone without a namespace (KEY-01).
impl fmt::Display for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.namespace.is_empty() {
            f.write_str(&self.name)
        } else {
            write!(f, "{}/{}", self.namespace, self.name)
        }
    }
}

impl fmt::Debug for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Splits `name` or `namespace/name`; more parts are an error (KEY-04).
///
/// Not the exact inverse of `Display`: `/x` names `x` without a namespace.
impl FromStr for ObjectKey {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        match text.split_once('/') {
            None => Ok(Self::new("", text)),
            Some((namespace, name)) if !name.contains('/') => Ok(Self::new(namespace, name)),
            Some(_) => Err(Error::Key(text.to_owned())),
        }
    }
}

// === impl GroupVersionResource ===

impl GroupVersionResource {
    /// Names a resource by its three parts.
    pub fn new(group: impl Into<String>, version: impl Into<String>, resource: impl Into<String>) -> Self {
        Self { group: group.into(), version: version.into(), resource: resource.into() }
    }

    /// Returns the `apiVersion` of the resource's objects: `apps/v1`, or `v1` in the core group.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() { self.version.clone() } else { format!("{}/{}", self.group, self.version) }
    }
}

impl fmt::Display for GroupVersionResource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.group.is_empty() {
            write!(f, "{}/", self.group)?;
        }
        write!(f, "{}/{}", self.version, self.resource)
    }
}

impl FromStr for GroupVersionResource {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let parts: Vec<&str> = text.split('/').collect();
        match parts[..] {
            _ if parts.iter().any(|part| part.is_empty()) => Err(Error::Resource(text.to_owned())),
            [version, resource] => Ok(Self::new("", version, resource)),
            [group, version, resource] => Ok(Self::new(group, version, resource)),
            _ => Err(Error::Resource(text.to_owned())),
        }
    }
}

// === impl TypeMeta ===

impl TypeMeta {
    /// Names a kind by its `apiVersion` and `kind`.
    pub fn new(api_version: impl AsRef<str>, kind: impl AsRef<str>) -> Self {
        Self { api_version: Arc::from(api_version.as_ref()), kind: Arc::from(kind.as_ref()) }
    }
}

impl fmt::Display for TypeMeta {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, Kind={}", self.api_version, self.kind)
    }
}

impl fmt::Debug for TypeMeta {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn key_01_namespace_and_name_or_name_alone() {
        assert_eq!(ObjectKey::new("ns", "x").to_string(), "ns/x");
        assert_eq!(ObjectKey::new("", "x").to_string(), "x");
    }

    #[test]
    fn key_04_one_part_two_parts_and_no_more() {
        assert_eq!("x".parse(), Ok(ObjectKey::new("", "x")));
        assert_eq!("ns/x".parse(), Ok(ObjectKey::new("ns", "x")));
        assert_eq!("/x".parse(), Ok(ObjectKey::new("", "x")));
        assert_eq!("a/b/c".parse::<ObjectKey>(), Err(Error::Key("a/b/c".into())));
    }

    #[test]
    fn resource_round_trip() {
        for text in ["v1/pods", "apps/v1/deployments"] {
            assert_eq!(text.parse::<GroupVersionResource>().unwrap().to_string(), text);
        }
        for text in ["pods", "", "a/b/c/d", "/v1/pods", "v1/"] {
            assert!(text.parse::<GroupVersionResource>().is_err(), "{text:?}");
        }
        assert_eq!(GroupVersionResource::new("apps", "v1", "deployments").api_version(), "apps/v1");
        assert_eq!(GroupVersionResource::new("", "v1", "pods").api_version(), "v1");
    }
}

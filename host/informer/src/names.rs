//! What things are called: object keys, resources and kinds.
//!
//! Not here: anything that looks inside an object; that is `object`.

mod key;

use std::fmt;
use std::ops::Deref;
use std::str::FromStr;
use std::sync::Arc;

pub use key::ObjectKey;
pub(crate) use key::{KeyMap, KeySet};

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

/// What an object says it is: its `apiVersion` and `kind`, the fields of [`TypeNames`]. One pointer, cheap to clone.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TypeMeta(Arc<TypeNames>);

/// What a [`TypeMeta`] consists of.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub struct TypeNames {
    /// `v1`, `apps/v1` …
    pub api_version: Box<str>,
    /// `Pod`, `Deployment` …
    pub kind: Box<str>,
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
        let (api_version, kind) = (api_version.as_ref().into(), kind.as_ref().into());
        Self(Arc::new(TypeNames { api_version, kind }))
    }
}

impl Deref for TypeMeta {
    type Target = TypeNames;

    fn deref(&self) -> &TypeNames {
        &self.0
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

//! Names: object keys, resources and kinds.
//!
//! Nothing here reads objects.

mod key;

use std::fmt;
use std::ops::Deref;
use std::str::FromStr;
use std::sync::Arc;

pub use key::ObjectKey;
pub(crate) use key::{KeyMap, KeySet};

/// A resource as its REST path names it: group, version and plural name.
///
/// `Display` and `FromStr` use the form `apps/v1/deployments`, or `v1/pods` in the core group.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GroupVersionResource {
    /// The API group, such as `apps`; empty for the core group.
    pub group: String,
    /// The API version, such as `v1`.
    pub version: String,
    /// The resource's plural, lower-case name, such as `configmaps`.
    pub resource: String,
}

/// An object's `apiVersion` and `kind`, as fields of [`TypeNames`]. Cheap to clone: it is one pointer.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TypeMeta(Arc<TypeNames>);

/// The fields of a [`TypeMeta`].
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub struct TypeNames {
    /// The `apiVersion`, such as `v1` or `apps/v1`.
    pub api_version: Box<str>,
    /// The kind, such as `Pod`.
    pub kind: Box<str>,
}

/// Why a text is not a key or resource.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The text is not `name` or `namespace/name`.
    #[error("unexpected key format: {0:?}")]
    Key(String),
    /// The text is not `version/resource` or `group/version/resource`.
    #[error("unexpected resource format: {0:?}, expected version/resource or group/version/resource")]
    Resource(String),
}

// === impl GroupVersionResource ===

impl GroupVersionResource {
    /// Creates a resource name from its three parts.
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
    /// Creates a type from its `apiVersion` and `kind`.
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
    fn a_resource_is_parsed_from_its_displayed_form() {
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

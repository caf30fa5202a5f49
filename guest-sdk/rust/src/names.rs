//! Names of resources and objects.

pub use oarlock_sdk_bindings::oarlock::plugin::types::{
    GroupVersionResource, Namespaces, ObjectKey, ObjectRef,
};

/// Returns the name of a resource: `gvr("apps", "v1", "deployments")`. The core group is the empty string.
pub fn gvr(group: &str, version: &str, plural: &str) -> GroupVersionResource {
    GroupVersionResource { group: group.to_owned(), version: version.to_owned(), plural: plural.to_owned() }
}

/// Returns the name of an object. The namespace of a cluster-scoped object is empty.
pub fn key(namespace: impl Into<String>, name: impl Into<String>) -> ObjectKey {
    ObjectKey { namespace: namespace.into(), name: name.into() }
}

/// Escapes a segment of a JSON pointer: `~` becomes `~0`, `/` becomes `~1`.
pub fn escape_pointer(segment: &str) -> String {
    segment.replace('~', "~0").replace('/', "~1")
}

//! Full objects, or metadata only.

/// How much of each object an informer requests and caches.
///
/// Type, key, uid and resourceVersion of an object are the same in both forms, if its type is known before it
/// is decoded. Else the type of metadata is `PartialObjectMetadata`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Content {
    /// `apiVersion`, `kind` and `metadata` only.
    Metadata,
    /// The whole object.
    #[default]
    Full,
}

/// Whether this is `PartialObjectMetadata`, the type of every object of which the API server sends only
/// metadata.
pub(super) fn is_partial(api_version: &str, kind: &str) -> bool {
    kind == "PartialObjectMetadata" && api_version.starts_with("meta.k8s.io/")
}

//! How much of each object is kept.

/// How much of each object is asked for and kept.
///
/// An object is the same one in both forms, with the same type, key, uid and resourceVersion; the smaller form has nothing but
/// `apiVersion`, `kind` and `metadata`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Content {
    /// `apiVersion`, `kind` and `metadata`.
    Metadata,
    /// All of it.
    #[default]
    Full,
}

/// Whether this is the type under which the API sends metadata alone, whatever the object is.
pub(super) fn is_partial(api_version: &str, kind: &str) -> bool {
    kind == "PartialObjectMetadata" && api_version.starts_with("meta.k8s.io/")
}

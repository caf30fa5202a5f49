//! The two kinds of objects that mirror copies.

/// A kind of object that mirror copies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    ConfigMap,
    Secret,
}

// === impl Kind ===

impl Kind {
    pub(crate) const ALL: [Self; 2] = [Self::ConfigMap, Self::Secret];

    /// Returns the `kind` of an object.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::ConfigMap => "ConfigMap",
            Self::Secret => "Secret",
        }
    }

    /// Returns the resource, which is also the name of its lister.
    pub(crate) fn plural(self) -> &'static str {
        match self {
            Self::ConfigMap => "configmaps",
            Self::Secret => "secrets",
        }
    }

    /// Returns the name of the subscription to sources, and of their index by annotation.
    pub(crate) fn sources(self) -> &'static str {
        match self {
            Self::ConfigMap => "configmap-sources",
            Self::Secret => "secret-sources",
        }
    }

    /// Returns the name of the subscription to copies, and of their index by source.
    pub(crate) fn copies(self) -> &'static str {
        match self {
            Self::ConfigMap => "configmap-copies",
            Self::Secret => "secret-copies",
        }
    }

    /// Returns the fields of a source that a copy has.
    pub(crate) fn content(self) -> &'static [&'static str] {
        match self {
            Self::ConfigMap => &["data", "binaryData"],
            Self::Secret => &["data"],
        }
    }
}

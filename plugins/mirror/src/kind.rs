//! The two kinds that are mirrored.

/// A resource that can be mirrored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    ConfigMap,
    Secret,
}

// === impl Kind ===

impl Kind {
    pub(crate) const ALL: [Self; 2] = [Self::ConfigMap, Self::Secret];

    /// The `kind` in an object.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::ConfigMap => "ConfigMap",
            Self::Secret => "Secret",
        }
    }

    /// The resource, which is also the name of its lister.
    pub(crate) fn plural(self) -> &'static str {
        match self {
            Self::ConfigMap => "configmaps",
            Self::Secret => "secrets",
        }
    }

    /// The subscription to sources, and the index of what they ask for.
    pub(crate) fn sources(self) -> &'static str {
        match self {
            Self::ConfigMap => "configmap-sources",
            Self::Secret => "secret-sources",
        }
    }

    /// The subscription to copies, and the index by the source they name.
    pub(crate) fn copies(self) -> &'static str {
        match self {
            Self::ConfigMap => "configmap-copies",
            Self::Secret => "secret-copies",
        }
    }

    /// The fields that a copy takes over from its source.
    pub(crate) fn content(self) -> &'static [&'static str] {
        match self {
            Self::ConfigMap => &["data", "binaryData"],
            Self::Secret => &["data"],
        }
    }
}

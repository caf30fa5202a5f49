//! The two kinds of objects that mirror copies.

use oarlock_sdk::{Client, Index, Lister};

const CONFIGMAPS: Lister = Lister::new("configmaps", "", "v1", "configmaps");
const SECRETS: Lister = Lister::new("secrets", "", "v1", "secrets");

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

    /// Reads the objects of this kind from the cache.
    pub(crate) fn lister(self) -> Lister {
        match self {
            Self::ConfigMap => CONFIGMAPS,
            Self::Secret => SECRETS,
        }
    }

    pub(crate) fn client(self) -> Client {
        Client::new(self.lister().gvr())
    }

    /// Finds sources by their annotation.
    pub(crate) fn sources_index(self) -> Index {
        self.lister().index_by_pointer(self.sources(), crate::source::MIRROR_TO_POINTER)
    }

    /// Finds copies by their source.
    pub(crate) fn copies_index(self) -> Index {
        self.lister().index_by_pointer(self.copies(), crate::copy::MIRRORED_FROM_POINTER)
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

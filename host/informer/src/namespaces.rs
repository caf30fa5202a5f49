//! A choice of namespaces.

use std::collections::BTreeSet;

/// All namespaces, or these only. Cluster-scoped objects are in the namespace with the empty name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Namespaces {
    /// Every namespace, also those that do not exist yet, and cluster-scoped objects.
    #[default]
    All,
    /// These only; none, if the set is empty.
    Only(BTreeSet<String>),
}

// === impl Namespaces ===

impl Namespaces {
    /// Returns the choice of one namespace.
    #[must_use]
    pub fn one(namespace: impl Into<String>) -> Self {
        Self::Only(BTreeSet::from([namespace.into()]))
    }

    /// Whether the namespace is among them.
    #[must_use]
    pub fn contains(&self, namespace: &str) -> bool {
        match self {
            Self::All => true,
            Self::Only(namespaces) => namespaces.contains(namespace),
        }
    }
}

impl From<Option<BTreeSet<String>>> for Namespaces {
    fn from(namespaces: Option<BTreeSet<String>>) -> Self {
        namespaces.map_or(Self::All, Self::Only)
    }
}

impl FromIterator<String> for Namespaces {
    fn from_iter<I: IntoIterator<Item = String>>(namespaces: I) -> Self {
        Self::Only(namespaces.into_iter().collect())
    }
}

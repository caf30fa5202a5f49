//! A set of namespaces.

use std::collections::BTreeSet;

/// All namespaces, or some of them. Cluster-scoped objects belong to the namespace with the empty name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Namespaces {
    /// Every namespace, also future ones, and cluster-scoped objects.
    #[default]
    All,
    /// Only these namespaces; an empty set means none.
    Only(BTreeSet<String>),
}

// === impl Namespaces ===

impl Namespaces {
    /// Returns a set of one namespace.
    #[must_use]
    pub fn one(namespace: impl Into<String>) -> Self {
        Self::Only(BTreeSet::from([namespace.into()]))
    }

    /// Returns true if the namespace belongs to the set.
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

//! Objects of one moment.

use super::state::View;
use crate::namespaces::Namespaces;
use crate::object::Object;

/// A view of objects as the cache had them at one moment, sorted by key.
///
/// Creating it does not touch the objects, and it holds no lock. While it exists, the writer copies each
/// chunk of 256 references before it changes one of them. So iterate it and drop it, and do not store it.
pub struct Objects {
    view: View,
    namespaces: Namespaces,
}

// === impl Objects ===

impl Objects {
    pub(super) fn new(view: View, namespaces: Namespaces) -> Self {
        Self { view, namespaces }
    }

    /// Returns the objects. Clone an object to keep it.
    pub fn iter(&self) -> impl Iterator<Item = &Object> {
        self.view.objects(&self.namespaces)
    }

    /// Returns the number of objects.
    #[must_use]
    pub fn len(&self) -> usize {
        self.view.count(&self.namespaces)
    }

    /// Whether the view has no objects.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

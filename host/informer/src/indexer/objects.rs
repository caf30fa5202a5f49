//! Many objects of one moment.

use super::state::View;
use crate::namespaces::Namespaces;
use crate::object::Object;

/// Objects as they were in the cache at one moment, sorted by key.
///
/// However many they are, taking them costs next to nothing: no object's references are counted, and no lock is held. What the
/// writer changes while this lives it copies before, 256 objects at a time; so it is there to be walked, and dropped.
pub struct Objects {
    view: View,
    namespaces: Namespaces,
}

// === impl Objects ===

impl Objects {
    pub(super) fn new(view: View, namespaces: Namespaces) -> Self {
        Self { view, namespaces }
    }

    /// Returns the objects. To keep one, clone it.
    pub fn iter(&self) -> impl Iterator<Item = &Object> {
        self.view.objects(&self.namespaces)
    }

    /// Returns how many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.view.count(&self.namespaces)
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

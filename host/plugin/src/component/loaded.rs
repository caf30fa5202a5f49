//! The loaded components, which plugins with the same component share.

use std::sync::{Arc, Weak};

use super::{Component, Inner};

/// A loaded component, for as long as a plugin uses it.
pub(crate) struct Loaded(Weak<Inner>);

// === impl Loaded ===

impl Loaded {
    pub(crate) fn of(component: &Component) -> Self {
        Self(Arc::downgrade(&component.inner))
    }

    /// Returns the component, if a plugin still uses it.
    pub(crate) fn component(&self) -> Option<Component> {
        self.0.upgrade().map(|inner| Component { inner })
    }
}

//! Label and field selectors of lists and watches.

mod field;
mod text;

pub(crate) use field::{FieldSelector, exact_name};
pub(crate) use text::label_text;

use crate::store::Stored;
use oarlock_label_selector::LabelSelector;

/// The label selector, the field selector and the namespace of a request.
#[derive(Clone, Debug, Default)]
pub(crate) struct Selection {
    pub(crate) labels: LabelSelector,
    pub(crate) fields: FieldSelector,
    /// Empty for all namespaces.
    pub(crate) namespace: String,
}

// === impl Selection ===

impl Selection {
    pub(crate) fn matches(&self, object: &Stored) -> bool {
        (self.namespace.is_empty() || self.namespace == object.namespace)
            && self.labels.matches(object.labels.as_slice())
            && self.fields.matches(object)
    }

    /// Returns whether the selectors are empty, so that only the namespace selects.
    pub(crate) fn is_everything(&self) -> bool {
        self.labels.is_everything() && self.fields.is_empty()
    }
}

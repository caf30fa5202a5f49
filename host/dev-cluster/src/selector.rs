//! Label and field selectors of lists and watches.

mod field;
mod label;
mod text;

pub(crate) use field::{FieldSelector, exact_name};
pub(crate) use label::LabelSelector;
pub(crate) use text::label_text;

use crate::store::Stored;

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
            && self.labels.matches(&object.labels)
            && self.fields.matches(object)
    }

    /// Returns whether the selectors are empty, so that only the namespace selects.
    pub(crate) fn is_everything(&self) -> bool {
        self.labels.is_empty() && self.fields.is_empty()
    }
}

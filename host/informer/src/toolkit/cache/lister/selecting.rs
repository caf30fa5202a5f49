//! Finds the objects whose label selector selects a given object.

use oarlock_json::JsonPointer;
use oarlock_label_selector::LabelSelector;

use super::Lister;
use crate::names::ObjectKey;
use crate::object::Object;

/// The reason why no object selects a given one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SelectingError {
    /// The object has no labels.
    #[error("nothing in {resource} selects {key}, because it has no labels")]
    NoLabels {
        /// The resource that was searched.
        resource: String,
        /// The object.
        key: ObjectKey,
    },
    /// No object in its namespace selects it.
    #[error("nothing in {resource} of namespace {:?} selects {key}", key.namespace())]
    NoneFound {
        /// The resource that was searched.
        resource: String,
        /// The object.
        key: ObjectKey,
    },
}

// === impl Lister ===

impl Lister {
    /// Returns the objects in the namespace of this one whose `spec.selector` selects it, such as the
    /// DaemonSets of a Pod. A selector that is missing, empty or invalid selects no object.
    ///
    /// # Errors
    ///
    /// When no object selects it.
    pub fn selecting(&self, object: &Object) -> Result<Vec<Object>, SelectingError> {
        let resource = super::group_resource(&self.resource);
        let key = object.key().clone();
        let labels = object.labels();
        if labels.is_empty() {
            return Err(SelectingError::NoLabels { resource, key });
        }
        let pointer = JsonPointer::from(["spec", "selector"]);
        let mut found = self.namespace(key.namespace()).list(&LabelSelector::everything());
        found.retain(|candidate| {
            let selector = candidate.pointer(&pointer);
            let selector = selector.and_then(|json| LabelSelector::from_json(&json).ok());
            selector.is_some_and(|selector| !selector.is_everything() && selector.matches(&labels))
        });
        if found.is_empty() { Err(SelectingError::NoneFound { resource, key }) } else { Ok(found) }
    }
}

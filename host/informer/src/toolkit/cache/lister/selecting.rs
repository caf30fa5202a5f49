//! The other way round: which objects select a given one by its labels.

use oarlock_json::JsonPointer;
use oarlock_label_selector::LabelSelector;

use super::Lister;
use crate::names::ObjectKey;
use crate::object::Object;

/// Why nothing is known to select an object.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SelectingError {
    /// It has no labels, by which anything could.
    #[error("nothing in {resource} selects {key}, because it has no labels")]
    NoLabels {
        /// Where was looked.
        resource: String,
        /// The object.
        key: ObjectKey,
    },
    /// Nothing in its namespace does.
    #[error("nothing in {resource} of namespace {:?} selects {key}", key.namespace())]
    NoneFound {
        /// Where was looked.
        resource: String,
        /// The object.
        key: ObjectKey,
    },
}

// === impl Lister ===

impl Lister {
    /// Returns the objects whose `spec.selector` selects this one, such as the DaemonSets (Deployments, Services …) of a Pod: those of its
    /// own namespace. Selectors that are missing, empty or not understood select nothing.
    ///
    /// # Errors
    ///
    /// When there are none, which says something about the object or about the cache.
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

//! Which changes concern a listener, and as what.
//!
//! As client-go's filtering handler: an object that begins to match is an add, one that ceases to match a delete of its old
//! state. Whether a deleted object matched is asked of the state that the cache held, so that whoever was told of the object is told of its end.

use crate::json_pointer::JsonPointer;
use crate::object::Object;
use crate::selector::{FieldCondition, LabelSelector};

use super::notification::Notification;

/// A change of the cache.
#[derive(Clone, Debug)]
pub(crate) enum Change {
    /// The object is new in the cache.
    Added { new: Object, is_in_initial_list: bool },
    /// The object in the cache was replaced by another version of it, or by itself.
    Updated { old: Object, new: Object, is_resync: bool },
    /// The object was taken out of the cache. `object` is what the deletion told, `old` what the cache held.
    Deleted { old: Object, object: Object, final_state_unknown: bool },
}

/// What a listener is interested in, but for namespaces.
#[derive(Debug)]
pub(super) struct Filter {
    pub(super) selector: LabelSelector,
    pub(super) conditions: Vec<FieldCondition>,
    /// The pointers of the conditions, to be read in one pass.
    condition_pointers: Vec<JsonPointer>,
    /// Updates that change none of these are skipped; if there are none, no update is.
    pub(super) fields: Vec<JsonPointer>,
}

// === impl Change ===

impl Change {
    /// Whether it is an update from one resourceVersion to the same.
    pub(crate) fn is_sync(&self) -> bool {
        match self {
            Self::Updated { old, new, .. } => old.is_at_version_of(new),
            Self::Added { .. } | Self::Deleted { .. } => false,
        }
    }
}

// === impl Filter ===

impl Filter {
    pub(super) fn new(
        selector: LabelSelector,
        conditions: Vec<FieldCondition>,
        fields: Vec<JsonPointer>,
    ) -> Self {
        let condition_pointers = conditions.iter().map(|condition| condition.pointer().clone()).collect();
        Self { selector, conditions, condition_pointers, fields }
    }

    /// Whether every object matches.
    pub(super) fn is_everything(&self) -> bool {
        self.selector.is_everything() && self.conditions.is_empty()
    }

    /// Whether the object matches selector and conditions.
    pub(super) fn matches(&self, object: &Object) -> bool {
        if !self.selector.is_everything() && !self.selector.selects(object) {
            return false;
        }
        if self.conditions.is_empty() {
            return true;
        }
        let values = object.pointers(&self.condition_pointers);
        self.conditions.iter().zip(values).all(|(condition, value)| condition.matches_value(value.as_deref()))
    }

    /// Returns what the listener is to be told of a change, if anything.
    pub(super) fn notification(&self, change: &Change) -> Option<Notification> {
        match change {
            Change::Added { new, is_in_initial_list } => self.matches(new).then(|| Notification::Added {
                object: new.clone(),
                is_in_initial_list: *is_in_initial_list,
            }),
            Change::Deleted { old, object, final_state_unknown } => self.matches(old).then(|| {
                Notification::Deleted { object: object.clone(), final_state_unknown: *final_state_unknown }
            }),
            Change::Updated { old, new, is_resync } => {
                let new_matches = self.matches(new);
                let old_matches = if old.is_same(new) { new_matches } else { self.matches(old) };
                match (new_matches, old_matches) {
                    (true, true) if *is_resync || self.is_worth_telling(old, new) => {
                        Some(Notification::Updated { old: old.clone(), new: new.clone() })
                    }
                    (true, false) => {
                        Some(Notification::Added { object: new.clone(), is_in_initial_list: false })
                    }
                    (false, true) => {
                        Some(Notification::Deleted { object: old.clone(), final_state_unknown: false })
                    }
                    (true, true) | (false, false) => None,
                }
            }
        }
    }

    /// Whether an update changed a declared field, the uid or the deletionTimestamp.
    fn is_worth_telling(&self, old: &Object, new: &Object) -> bool {
        if self.fields.is_empty()
            || !old.has_uid_of(new)
            || old.deletion_timestamp() != new.deletion_timestamp()
        {
            return true;
        }
        !old.is_same(new) && old.pointers(&self.fields) != new.pointers(&self.fields)
    }
}

#[cfg(test)]
mod tests;

//! Which objects concern a listener, and what a change of one is to it.
//!
//! As client-go's filtering handler: an object that begins to match is an add, one that ceases to match a delete of its old
//! state. Whether a deleted object matched is asked of the state that the cache held, so that a listener that was given the object is
//! also given its end. What is asked of the text is asked for all listeners of an informer at once: see `matching`.

use crate::object::Object;
use crate::selector::{FieldCondition, LabelSelector};
use oarlock_json::{JsonPointer, PointerSet};

use super::matching::{Matching, Plan};
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
    /// The pointers of the conditions, in their order.
    condition_pointers: PointerSet,
    /// Updates that change none of these are skipped; if there are none, no update is.
    pub(super) fields: Vec<JsonPointer>,
}

/// What a change is to a listener.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It was not asked.
    #[default]
    Unknown,
    /// The object matches neither before nor after.
    Nothing,
    /// The object appears.
    Added,
    /// The object changes in what the listener cares about.
    Updated,
    /// The object changes in nothing that the listener cares about.
    Unchanged,
    /// The object goes.
    Deleted,
}

// === impl Change ===

impl Change {
    /// Whether it is an update that changes nothing: from one resourceVersion to the same, and to the same text.
    ///
    /// client-go looks at the versions alone. But another text at the same version is a change like any other: a listener that was not
    /// told would find in its next update an old state that it never saw.
    pub(crate) fn is_sync(&self) -> bool {
        match self {
            Self::Updated { old, new, .. } => {
                old.is_same(new) || old.is_at_version_of(new) && old.has_uid_of(new) && old == new
            }
            Self::Added { .. } | Self::Deleted { .. } => false,
        }
    }

    /// Returns the object that the cache holds, or held last.
    pub(crate) fn object(&self) -> &Object {
        match self {
            Self::Added { new, .. } | Self::Updated { new, .. } => new,
            Self::Deleted { old, .. } => old,
        }
    }

    /// Returns what it is to a listener that is interested in everything.
    pub(crate) fn verdict(&self) -> Verdict {
        match self {
            Self::Added { .. } => Verdict::Added,
            Self::Updated { .. } => Verdict::Updated,
            Self::Deleted { .. } => Verdict::Deleted,
        }
    }

    /// Whether an update is delivered whatever fields are declared: a resync, or a change of uid or deletionTimestamp.
    pub(super) fn is_never_skipped(&self) -> bool {
        match self {
            Self::Updated { old, new, is_resync } => {
                *is_resync || !old.has_uid_of(new) || old.deletion_timestamp() != new.deletion_timestamp()
            }
            Self::Added { .. } | Self::Deleted { .. } => true,
        }
    }

    /// Whether the two are of the same states.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (
                Self::Added { new, is_in_initial_list },
                Self::Added { new: other, is_in_initial_list: other_initial },
            ) => new.is_same(other) && is_in_initial_list == other_initial,
            (
                Self::Updated { old, new, is_resync },
                Self::Updated { old: other_old, new: other_new, is_resync: other_resync },
            ) => old.is_same(other_old) && new.is_same(other_new) && is_resync == other_resync,
            (
                Self::Deleted { old, object, final_state_unknown },
                Self::Deleted { old: other_old, object: other, final_state_unknown: other_unknown },
            ) => old.is_same(other_old) && object.is_same(other) && final_state_unknown == other_unknown,
            _ => false,
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
        let condition_pointers = PointerSet::new(conditions.iter().map(FieldCondition::pointer));
        Self { selector, conditions, condition_pointers, fields }
    }

    /// Finds out what a change is to this one alone.
    pub(super) fn judge(&self, change: &Change) -> Verdict {
        let plan = Plan::new([self]);
        let mut matching = Matching::default();
        matching.begin(&plan, change, |_| true);
        while !matching.advance(&plan, change, &mut { usize::MAX }) {}
        matching.verdict(&plan, 0)
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
        let found = object.find(&self.condition_pointers);
        self.conditions.iter().zip(found.iter()).all(|(condition, value)| condition.matches_value(value))
    }
}

// === impl Verdict ===

impl Verdict {
    /// Returns what a listener is given of a change that is this to it.
    pub(super) fn notification(self, change: &Change) -> Option<Notification> {
        match (self, change) {
            (Self::Added, Change::Added { new: object, is_in_initial_list }) => {
                Some(Notification::Added { object: object.clone(), is_in_initial_list: *is_in_initial_list })
            }
            (Self::Added, Change::Updated { new, .. }) => {
                Some(Notification::Added { object: new.clone(), is_in_initial_list: false })
            }
            (Self::Updated, Change::Updated { old, new, .. }) => {
                Some(Notification::Updated { old: old.clone(), new: new.clone() })
            }
            (Self::Deleted, Change::Updated { old, .. }) => {
                Some(Notification::Deleted { object: old.clone(), final_state_unknown: false })
            }
            (Self::Deleted, Change::Deleted { object, final_state_unknown, .. }) => {
                Some(Notification::Deleted {
                    object: object.clone(),
                    final_state_unknown: *final_state_unknown,
                })
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests;

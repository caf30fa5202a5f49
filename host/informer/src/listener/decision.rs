//! Decides what a listener receives of a change: which notification, if any.
//!
//! The rules are those of client-go's filtering handler: an object that begins to match is an add, one that
//! ceases to match is a delete of its old state. A deleted object is matched by the state that the cache
//! held, so a listener that received the object also receives its delete. An update that changes no declared
//! field is skipped, unless it is a resync or changes uid or deletionTimestamp.
//!
//! [`ChangeCheck`](super::ChangeCheck) finds the values that [`decide`] needs. A listener never receives
//! objects of namespaces that it does not see ([`ListenerShared::notify`](super::ListenerShared::notify)).

use super::change::Change;
use super::notification::Notification;

/// The notification that a listener receives of a change, if any.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Decision {
    /// The listener was not checked.
    #[default]
    NotChecked,
    /// Nothing: the object matches neither before nor after the change.
    NotMatching,
    /// An add.
    Added,
    /// An update.
    Updated,
    /// Nothing: the object matches, but the update changes no declared field.
    Skipped,
    /// A delete.
    Deleted,
}

/// Decides what a listener receives of a change.
///
/// `old_matches` and `new_matches` say whether the states before and after match the listener's filter; for
/// an add and a delete `new_matches` is about the one state. `is_relevant` returns whether an update of a
/// matching object is delivered: it changes a declared field, no field is declared, or it is never skipped.
pub(super) fn decide(
    change: &Change,
    old_matches: bool,
    new_matches: bool,
    is_relevant: impl FnOnce() -> bool,
) -> Decision {
    match (change, old_matches, new_matches) {
        (Change::Added { .. }, _, true) => Decision::Added,
        (Change::Deleted { .. }, _, true) => Decision::Deleted,
        (Change::Updated { .. }, false, true) => Decision::Added,
        (Change::Updated { .. }, true, false) => Decision::Deleted,
        (Change::Updated { .. }, true, true) if is_relevant() => Decision::Updated,
        (Change::Updated { .. }, true, true) => Decision::Skipped,
        (Change::Added { .. } | Change::Deleted { .. }, _, false) | (_, false, false) => {
            Decision::NotMatching
        }
    }
}

// === impl Decision ===

impl Decision {
    /// Returns the decision for a listener whose filter matches everything.
    pub(crate) fn of_unfiltered(change: &Change) -> Self {
        match change {
            Change::Added { .. } => Self::Added,
            Change::Updated { .. } => Self::Updated,
            Change::Deleted { .. } => Self::Deleted,
        }
    }

    /// Returns the notification that the listener receives, if any.
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

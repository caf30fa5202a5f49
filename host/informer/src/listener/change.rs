//! One change of the cache, before it is decided which listeners it concerns.

use crate::delta_fifo::Delta;
use crate::object::Object;

/// A change of the cache.
#[derive(Clone, Debug)]
pub(crate) enum Change {
    /// The object is new in the cache.
    Added { new: Object, is_in_initial_list: bool },
    /// The object in the cache was replaced by another version of it, or by itself.
    Updated { old: Object, new: Object, is_resync: bool },
    /// The object was removed from the cache. `object` is the state that the delete carried, `old` the state
    /// in the cache.
    Deleted { old: Object, object: Object, final_state_unknown: bool },
}

// === impl Change ===

impl Change {
    /// Returns the change that a delta makes for the listeners if the cache holds `old`; none if it makes
    /// none.
    pub(crate) fn of_delta(delta: &Delta, old: Option<Object>, is_in_initial_list: bool) -> Option<Self> {
        match delta {
            Delta::Added(new) | Delta::Updated(new) | Delta::Replaced(new) | Delta::Sync(new) => {
                let new = new.clone();
                match old {
                    Some(old) if matches!(delta, Delta::Replaced(_)) && differs_in_content(&old, &new) => {
                        None
                    }
                    Some(old) => Some(Self::Updated { old, new, is_resync: matches!(delta, Delta::Sync(_)) }),
                    None => Some(Self::Added { new, is_in_initial_list }),
                }
            }
            Delta::Deleted(deleted) => {
                // No listener received an object that the cache did not hold, so no listener receives its
                // delete.
                let old = old?;
                // Never the state of another object of that name, which no listener received.
                let object =
                    deleted.last_known().filter(|object| object.has_uid_of(&old)).unwrap_or(&old).clone();
                Some(Self::Deleted { old, object, final_state_unknown: deleted.is_tombstone() })
            }
        }
    }

    /// Returns whether this is an update that changes nothing: same uid, same resourceVersion and same text.
    /// Only listeners that are resyncing receive it.
    ///
    /// client-go compares the versions alone. But another text at the same version is a change like any
    /// other: a listener that did not receive it would find an old state in its next update that it has never
    /// received.
    pub(crate) fn changes_nothing(&self) -> bool {
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

    /// Returns whether the change is delivered whichever fields are declared: unless it is an update that is
    /// no resync and keeps uid and deletionTimestamp.
    pub(super) fn ignores_declared_fields(&self) -> bool {
        match self {
            Self::Updated { old, new, is_resync } => {
                *is_resync || !old.has_uid_of(new) || old.deletion_timestamp() != new.deletion_timestamp()
            }
            Self::Added { .. } | Self::Deleted { .. } => true,
        }
    }

    /// Returns whether both are the same change, from the same state to the same state.
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

/// Returns whether these are the same version of one object, once with full content and once its metadata
/// alone. For a listener that is no change.
fn differs_in_content(old: &Object, new: &Object) -> bool {
    old.content() != new.content() && new.is_version_of(old)
}

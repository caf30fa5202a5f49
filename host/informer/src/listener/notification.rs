//! The notifications that a listener receives, and the outcomes that its consumer returns.

use std::time::Duration;

use tokio::time::Instant;

use super::values::NotificationFields;
use crate::names::ObjectKey;
use crate::object::Object;

/// One change of one object, as a listener receives it.
#[derive(Clone, Debug)]
pub enum Notification {
    /// The object appeared, or began to match.
    Added {
        /// The state of the object.
        object: Object,
        /// The add is part of the first list, of a late listener's snapshot or of a replay.
        is_in_initial_list: bool,
    },
    /// The object changed. `old` is the new state of the notification before; if the listener declares
    /// fields, it has the same values in these.
    Updated {
        /// The state before.
        old: Object,
        /// The state after.
        new: Object,
    },
    /// The object was deleted, or ceased to match.
    Deleted {
        /// The last known state.
        object: Object,
        /// The delete event was missed, so the last known state may be stale.
        final_state_unknown: bool,
    },
}

/// A notification that the consumer has taken. Its object is in flight until
/// [`ListenerHandle::finish`](super::ListenerHandle::finish).
#[derive(Clone, Debug)]
pub struct Delivery {
    /// The key of the object, for `finish`.
    pub key: ObjectKey,
    /// The change.
    pub notification: Notification,
    /// The values of the listener's declared fields, as far as they were found when the change was matched.
    pub fields: NotificationFields,
    /// Whether several notifications, or skipped updates, were merged into it.
    pub is_merged: bool,
    /// How many deliveries of it, or of the notifications merged into it, failed since the object's last
    /// event.
    pub attempts: u32,
    /// When the oldest of the notifications merged into it was appended to the backlog.
    pub arrived: Instant,
}

/// The outcome of a delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The notification was handled. The object's next notification may follow.
    Done,
    /// The delivery failed. It is repeated once `after` has passed, merged with later notifications of its
    /// object.
    Retry {
        /// How long the object backs off. Other objects do not wait.
        after: Duration,
    },
    /// The notification waits, merged with later ones, until the consumer asks for this object with
    /// [`ListenerHandle::take_deferred`](super::ListenerHandle::take_deferred). It does not count as
    /// an attempt.
    Defer,
    /// The delivery failed and is not retried: the object is parked. It is delivered again at the object's
    /// next event (merged with it), at a replay, or by
    /// [`ListenerHandle::retry_parked`](super::ListenerHandle::retry_parked).
    Park,
}

// === impl Delivery ===

impl Delivery {
    /// Returns for how long the oldest of the notifications merged into it has waited.
    #[must_use]
    pub fn waited(&self) -> Duration {
        self.arrived.elapsed()
    }
}

// === impl Notification ===

impl Notification {
    /// Returns the newest state in the notification.
    #[must_use]
    pub fn object(&self) -> &Object {
        match self {
            Self::Added { object, .. } | Self::Deleted { object, .. } => object,
            Self::Updated { new, .. } => new,
        }
    }

    /// Returns the state before an update or delete.
    #[must_use]
    pub fn old(&self) -> Option<&Object> {
        match self {
            Self::Added { .. } => None,
            Self::Updated { old: object, .. } | Self::Deleted { object, .. } => Some(object),
        }
    }

    /// Returns the state after an add or update.
    #[must_use]
    #[expect(clippy::new_ret_no_self, reason = "returns the new state, as `old` the old one")]
    pub fn new(&self) -> Option<&Object> {
        match self {
            Self::Added { object, .. } | Self::Updated { new: object, .. } => Some(object),
            Self::Deleted { .. } => None,
        }
    }
}

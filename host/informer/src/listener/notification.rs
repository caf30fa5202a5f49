//! What a listener is told, and how it answers.

use std::time::Duration;

use tokio::time::Instant;

use crate::names::ObjectKey;
use crate::object::Object;

/// One thing that happened to one object, as a listener is told of it.
#[derive(Clone, Debug)]
pub enum Notification {
    /// The object appeared, or began to match.
    Added {
        /// Its state.
        object: Object,
        /// It is part of the first list, or of a replay: not news.
        is_in_initial_list: bool,
    },
    /// The object changed. `old` is what the notification before brought (over the declared fields, where there are any).
    Updated {
        /// The state before.
        old: Object,
        /// The state after.
        new: Object,
    },
    /// The object is gone, or ceased to match.
    Deleted {
        /// The last state that is known.
        object: Object,
        /// The deletion itself was missed, so the last state may be stale.
        final_state_unknown: bool,
    },
}

/// A notification on its way to the consumer. Its object is in flight until [`ListenerHandle::finish`](super::ListenerHandle::finish).
#[derive(Clone, Debug)]
pub struct Delivery {
    /// Names the object; what `finish` wants to hear.
    pub key: ObjectKey,
    /// What happened.
    pub notification: Notification,
    /// How many tries of it (or of what was merged into it) failed since the object's last event.
    pub attempts: u32,
    /// When the oldest of what was merged into it arrived.
    pub arrived: Instant,
}

/// How a delivery went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It was handled. The object's next notification may follow.
    Done,
    /// It failed: it is to be delivered again once `after` has passed, with what happened to its object since merged in.
    Retry {
        /// How long to wait. Other objects do not wait.
        after: Duration,
    },
    /// It waits, merged with what follows, until the consumer asks for this very object with
    /// [`ListenerHandle::take_deferred`](super::ListenerHandle::take_deferred). It does not count as tried.
    Defer,
    /// It failed for good: it becomes a dead letter, tried again (merged into the current state) at the object's next event, at
    /// a replay, or by [`ListenerHandle::retry_parked`](super::ListenerHandle::retry_parked).
    Park,
}

// === impl Delivery ===

impl Delivery {
    /// Returns how long the oldest of what was merged into it has waited until now.
    #[must_use]
    pub fn waited(&self) -> Duration {
        self.arrived.elapsed()
    }
}

// === impl Notification ===

impl Notification {
    /// Returns the newest state that the notification carries.
    #[must_use]
    pub fn object(&self) -> &Object {
        match self {
            Self::Added { object, .. } | Self::Deleted { object, .. } => object,
            Self::Updated { new, .. } => new,
        }
    }

    /// Returns the state before: that of updates and deletes.
    #[must_use]
    pub fn old(&self) -> Option<&Object> {
        match self {
            Self::Added { .. } => None,
            Self::Updated { old: object, .. } | Self::Deleted { object, .. } => Some(object),
        }
    }

    /// Returns the state after: that of adds and updates.
    #[must_use]
    #[expect(clippy::new_ret_no_self, reason = "the word that goes with old; nothing is made here")]
    pub fn new(&self) -> Option<&Object> {
        match self {
            Self::Added { object, .. } | Self::Updated { new: object, .. } => Some(object),
            Self::Deleted { .. } => None,
        }
    }
}

//! A call that the plugin is due: for a notification, for the end of initial adds, or for a key of the work
//! queue.
//!
//! All three pass the same pipeline: [check](super::check), [call](super::call), [settle](super::settle).

use std::time::Duration;

use oarlock_informer::{Notification, listener::Delivery, object::ObjectKey};

use super::active_generation::ActiveGeneration;
use super::queue::{Key, KeyVersion, PluginQueue};

/// A call that the plugin is due. Subscriptions are named by their index in the generation.
pub(super) enum DueCall {
    /// A notification of a subscription, for `on-add`, `on-update` or `on-delete`.
    Notification { subscription: usize, delivery: Delivery },
    /// The end of a subscription's initial adds, for `on-synced`.
    Synced { subscription: usize },
    /// A key of the work queue, for `reconcile`.
    Key(Key),
}

/// Identifies the work of a call: calls with the same key are attempts at the same work.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub(super) enum CallKey {
    /// An object of a subscription.
    Object(usize, ObjectKey),
    /// The end of a subscription's initial adds.
    Synced(usize),
    /// A key of the work queue.
    Work(Key),
}

/// Changes with every event of an object or key, but not when the host replays the object.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum EventVersion {
    Object {
        uid: String,
        resource_version: String,
        is_deleted: bool,
    },
    /// The end of initial adds has one version only.
    Synced,
    Key(KeyVersion),
}

/// How a due call ends, whether the plugin was called or not.
#[derive(Clone, Copy, Debug)]
pub(super) enum Outcome {
    /// The work is done.
    Done,
    /// The work is done, and the plugin wants to be called for this key again after the wait.
    RequeueAfter(Duration),
    /// The plugin answered a failure; the host calls it again after the wait.
    RetryAfter(Duration),
    /// The call waits until [`CrashBackoff`](super::crash_backoff::CrashBackoff) returns its key.
    Defer,
    /// The host stops retrying until the next event, a swap, or the slow timer.
    Park,
    /// The plugin was stopped before it answered.
    Cancelled,
}

// === impl DueCall ===

impl DueCall {
    pub(super) fn key(&self) -> CallKey {
        match self {
            Self::Notification { subscription, delivery } => {
                CallKey::Object(*subscription, delivery.key.clone())
            }
            Self::Synced { subscription } => CallKey::Synced(*subscription),
            Self::Key(key) => CallKey::Work(key.clone()),
        }
    }

    pub(super) fn version(&self, queue: &PluginQueue) -> EventVersion {
        match self {
            Self::Notification { delivery, .. } => EventVersion::of(&delivery.notification),
            Self::Synced { .. } => EventVersion::Synced,
            Self::Key(key) => EventVersion::Key(queue.version(key)),
        }
    }

    /// Returns how many attempts have failed so far.
    pub(super) fn n_failures(&self, active: &ActiveGeneration, queue: &PluginQueue) -> u32 {
        match self {
            Self::Notification { delivery, .. } => delivery.attempts,
            Self::Synced { subscription } => active.subscriptions[*subscription].n_synced_failures(),
            Self::Key(key) => queue.n_failures(key),
        }
    }

    /// Returns the object, subscription or key of the call as text, such as `pods default/web`.
    pub(super) fn describe(&self, active: &ActiveGeneration) -> String {
        let name = |subscription: usize| &active.subscriptions[subscription].plan.name;
        match self {
            Self::Notification { subscription, delivery } => {
                format!("{} {}", name(*subscription), delivery.key)
            }
            Self::Synced { subscription } => name(*subscription).clone(),
            Self::Key(key) => key.to_string(),
        }
    }
}

// === impl CallKey ===

impl CallKey {
    /// Returns the subscription that the call belongs to, if it belongs to one.
    pub(super) fn subscription(&self) -> Option<usize> {
        match self {
            Self::Object(subscription, _) | Self::Synced(subscription) => Some(*subscription),
            Self::Work(_) => None,
        }
    }
}

// === impl EventVersion ===

impl EventVersion {
    fn of(notification: &Notification) -> Self {
        let object = notification.object();
        Self::Object {
            uid: object.uid().to_owned(),
            resource_version: object.resource_version().to_owned(),
            is_deleted: notification.new().is_none(),
        }
    }
}

// === impl Outcome ===

impl Outcome {
    /// Returns the outcome's name in metrics.
    pub(super) fn label(self) -> &'static str {
        match self {
            Self::Done | Self::RequeueAfter(_) => "done",
            Self::RetryAfter(_) => "retry",
            Self::Defer => "deferred",
            Self::Park => "parked",
            Self::Cancelled => "cancelled",
        }
    }
}

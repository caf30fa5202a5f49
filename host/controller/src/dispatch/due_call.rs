//! A call that the plugin is due: for a notification, for the end of initial adds, or for a key of the work
//! queue.
//!
//! All three pass the same pipeline: [check](super::check), [call](super::call), [settle](super::settle).

use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

use oarlock_informer::listener::{self, Delivery};
use oarlock_informer::{Notification, object::ObjectKey};

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

/// The object or key that a call is about, as a hash. No two calls with the same one are in progress at once.
///
/// Of an object, the namespace and the name count, not the resource, so that calls about an object are not
/// made at once whatever subscription they belong to. Two that hash alike by accident wait for each other, no
/// more.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct CallId(u64);

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

    /// Returns the object or key that the call is about; none for `on-synced`.
    pub(super) fn id(&self) -> Option<CallId> {
        let mut hasher = DefaultHasher::new();
        match self {
            Self::Notification { delivery, .. } => delivery.key.hash(&mut hasher),
            Self::Synced { .. } => return None,
            Self::Key(key) => key.hash(&mut hasher),
        }
        Some(CallId(hasher.finish()))
    }

    /// Returns the name of the contract's function.
    pub(super) fn function(&self) -> &'static str {
        match self {
            Self::Notification { delivery, .. } => match delivery.notification {
                Notification::Added { .. } => "on-add",
                Notification::Updated { .. } => "on-update",
                Notification::Deleted { .. } => "on-delete",
            },
            Self::Synced { .. } => "on-synced",
            Self::Key(_) => "reconcile",
        }
    }

    /// Returns whether the call only shows the plugin what exists already, so that it is no event.
    pub(super) fn is_replay(&self) -> bool {
        match self {
            Self::Notification { delivery, .. } => {
                matches!(delivery.notification, Notification::Added { is_in_initial_list: true, .. })
            }
            Self::Synced { .. } => true,
            Self::Key(_) => false,
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
        self.describe_with(|subscription| active.subscriptions[subscription].plan.name.clone())
    }

    /// The same with the names of the subscriptions.
    pub(super) fn describe_with(&self, subscription_name: impl Fn(usize) -> String) -> String {
        match self {
            Self::Notification { subscription, delivery } => {
                format!("{} {}", subscription_name(*subscription), delivery.key)
            }
            Self::Synced { subscription } => subscription_name(*subscription),
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
    /// Returns the outcome of a listener's delivery; none when the plugin was stopped.
    pub(super) fn of_delivery(self) -> Option<listener::Outcome> {
        match self {
            Self::Done | Self::RequeueAfter(_) => Some(listener::Outcome::Done),
            Self::RetryAfter(after) => Some(listener::Outcome::Retry { after }),
            Self::Defer => Some(listener::Outcome::Defer),
            Self::Park => Some(listener::Outcome::Park),
            Self::Cancelled => None,
        }
    }

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

//! The plugin's description of itself, built step by step.

mod read;
mod schedule;
mod subscription;

use oarlock_sdk_bindings::exports::oarlock::plugin::metadata as wit;
pub use oarlock_sdk_bindings::exports::oarlock::plugin::metadata::{
    Content, Enqueue, FieldCondition, NamedAt, OwnerKind, Scope, Test, Trigger, WallTimes,
};

pub use read::{Read, Request};
pub use schedule::{Schedule, at, every};
pub use subscription::{Subscription, enqueue_controller_owner, enqueue_label, enqueue_pointer};

use crate::Index;

/// Subscriptions, reads, indices, requests and schedules of a plugin. The host asks for it before it calls
/// the plugin.
#[derive(Clone, Debug)]
#[must_use]
pub struct Description(pub(crate) wit::Description);

// === impl Description ===

impl Description {
    /// Returns a description without subscriptions, of a plugin that keeps state between calls.
    pub fn new(name: &str, version: &str) -> Self {
        Self(wit::Description {
            name: name.to_owned(),
            version: version.to_owned(),
            subscriptions: Vec::new(),
            reads: Vec::new(),
            indices: Vec::new(),
            requests: Vec::new(),
            schedules: Vec::new(),
            stateless: false,
        })
    }

    /// Adds a subscription.
    pub fn subscribe(mut self, subscription: Subscription) -> Self {
        self.0.subscriptions.push(subscription.0);
        self
    }

    /// Adds a lister: a [`crate::Lister`], or a [`Read`] of one with its options.
    pub fn read(mut self, read: impl Into<Read>) -> Self {
        self.0.reads.push(read.into().0);
        self
    }

    /// Adds an index.
    pub fn index(mut self, index: Index) -> Self {
        self.0.indices.push(index.into());
        self
    }

    /// Declares requests that the plugin makes through [`crate::Client`].
    pub fn request(mut self, request: Request) -> Self {
        self.0.requests.push(request.0);
        self
    }

    /// Adds a schedule; see [`every`] and [`at`].
    pub fn schedule(mut self, schedule: Schedule) -> Self {
        self.0.schedules.push(schedule.0);
        self
    }

    /// Declares that the plugin can lose everything it keeps between calls.
    pub fn stateless(mut self) -> Self {
        self.0.stateless = true;
        self
    }
}

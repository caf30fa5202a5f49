//! What a plugin did.

use std::fmt;

use serde_json::Value;

use crate::events::EventType;
use crate::log::Level;
use crate::{GroupVersionResource, ObjectKey, ObjectRef};

/// A request that changes something. It is recorded whether or not it succeeded.
///
/// As text: `patch apps/v1/deployments/status home/web`.
#[derive(Clone, Debug, PartialEq)]
pub struct Write {
    /// `create`, `apply`, `patch`, `replace` or `delete`.
    pub verb: &'static str,
    /// The resource.
    pub target: GroupVersionResource,
    /// The object.
    pub key: ObjectKey,
    /// The subresource; empty for the object itself.
    pub subresource: String,
    /// The object or patch; null for a delete.
    pub body: Value,
}

/// A line of the log. As text: `info copied source=home/settings`.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// The level.
    pub level: Level,
    /// The message.
    pub message: String,
    /// Names and values.
    pub pairs: Vec<(String, String)>,
}

/// A Kubernetes Event. As text: `Warning MirrorRefused ConfigMap home/settings: the note`.
#[derive(Clone, Debug, PartialEq)]
pub struct RecordedEvent {
    /// Normal or warning.
    pub event_type: EventType,
    /// The reason, one CamelCase word.
    pub reason: String,
    /// The kind of the object.
    pub kind: String,
    /// The object that it is about.
    pub regarding: ObjectRef,
    /// The text.
    pub note: String,
}

impl fmt::Display for Write {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.verb, resource(&self.target))?;
        if !self.subresource.is_empty() {
            write!(f, "/{}", self.subresource)?;
        }
        write!(f, " {}", place(&self.key.namespace, &self.key.name))
    }
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let level = match self.level {
            Level::Trace => "trace",
            Level::Debug => "debug",
            Level::Info => "info",
            Level::Warn => "warn",
            Level::Error => "error",
        };
        write!(f, "{level} {}", self.message)?;
        self.pairs.iter().try_for_each(|(name, value)| write!(f, " {name}={value}"))
    }
}

impl fmt::Display for RecordedEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { event_type, reason, kind, regarding, note } = self;
        let event_type = match event_type {
            EventType::Normal => "Normal",
            EventType::Warning => "Warning",
        };
        let place = place(&regarding.namespace, &regarding.name);
        write!(f, "{event_type} {reason} {kind} {place}: {note}")
    }
}

/// Returns `apps/v1/deployments`, or `v1/pods` for the core group.
pub(super) fn resource(target: &GroupVersionResource) -> String {
    let GroupVersionResource { group, version, plural } = target;
    if group.is_empty() { format!("{version}/{plural}") } else { format!("{group}/{version}/{plural}") }
}

/// Returns `namespace/name`, or the name of a cluster-scoped object.
pub(super) fn place(namespace: &str, name: &str) -> String {
    if namespace.is_empty() { name.to_owned() } else { format!("{namespace}/{name}") }
}

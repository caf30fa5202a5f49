//! The notifications that guests report.
//!
//! The sample plugins log a line `notified` for every notification, with pairs that identify it. These lines
//! are the guest's own report: the host, which is under test, only passes them on.

use serde_json::Value;

/// The type of a notification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `on-add`.
    Add {
        /// Part of a first list or a replay.
        initial: bool,
    },
    /// `on-update`.
    Update,
    /// `on-delete`.
    Delete,
}

/// One notification, as the guest received it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReceivedNotification {
    /// The plugin's name.
    pub plugin: String,
    /// The generation of the plugin.
    pub generation: u64,
    /// The plugin's name for the subscription.
    pub subscription: String,
    /// The type.
    pub kind: Kind,
    /// `namespace/name`, or the name alone.
    pub key: String,
    /// The object's uid.
    pub uid: String,
    /// The object's resourceVersion: the new one of an update, the last known one of a delete.
    pub resource_version: String,
    /// The old one of an update.
    pub old_resource_version: Option<String>,
}

// === impl ReceivedNotification ===

impl ReceivedNotification {
    /// Reads one line of the host's JSON output. Returns `None` if no guest reports a notification with it.
    #[must_use]
    pub fn parse(line: &Value) -> Option<Self> {
        if line["event"] != "guest-log" || line["message"] != "notified" {
            return None;
        }
        let pair = |name: &str| line["pairs"][name].as_str().map(str::to_owned);
        let kind = match line["pairs"]["type"].as_str()? {
            "add" => Kind::Add { initial: line["pairs"]["initial"] == "true" },
            "update" => Kind::Update,
            "delete" => Kind::Delete,
            _ => return None,
        };
        let name = pair("name")?;
        let key = match pair("namespace").filter(|namespace| !namespace.is_empty()) {
            Some(namespace) => format!("{namespace}/{name}"),
            None => name,
        };
        Some(Self {
            plugin: line["plugin"].as_str()?.to_owned(),
            generation: line["generation"].as_u64()?,
            subscription: pair("subscription")?,
            kind,
            key,
            uid: pair("uid")?,
            resource_version: pair("resource-version")?,
            old_resource_version: pair("old-resource-version"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_log_lines_of_guests_are_read() {
        let line = |event: &str| {
            serde_json::json!({"event": event, "plugin": "hello", "generation": 2, "message": "notified", "pairs": {
                "type": "update", "subscription": "configmaps", "namespace": "default", "name": "a", "uid": "u",
                "resource-version": "7", "old-resource-version": "5"}})
        };
        let received = ReceivedNotification::parse(&line("guest-log")).expect("a guest's log line");
        assert_eq!(
            (received.key.as_str(), received.kind, received.generation),
            ("default/a", Kind::Update, 2)
        );
        assert_eq!(ReceivedNotification::parse(&line("delivered")), None);
    }
}

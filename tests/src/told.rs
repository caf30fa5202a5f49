//! What the guests say they were told.
//!
//! The sample plugins log a line `notified` for every notification, with what identifies it as pairs. This is the guest's own
//! word: the host that is on trial only carries it.

use serde_json::Value;

/// What a notification was.
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

/// One notification, as the guest saw it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Told {
    /// The plugin's name.
    pub plugin: String,
    /// Which loaded version of it.
    pub generation: u64,
    /// The plugin's name for the subscription.
    pub subscription: String,
    /// What it was.
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

// === impl Told ===

impl Told {
    /// Reads one line of the host's JSON output; none where it is no guest's word on a notification of an object.
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
    fn only_a_guests_word_counts() {
        let line = |event: &str| {
            serde_json::json!({"event": event, "plugin": "hello", "generation": 2, "message": "notified", "pairs": {
                "type": "update", "subscription": "configmaps", "namespace": "default", "name": "a", "uid": "u",
                "resource-version": "7", "old-resource-version": "5"}})
        };
        let told = Told::parse(&line("guest-log")).expect("a guest's word");
        assert_eq!((told.key.as_str(), told.kind, told.generation), ("default/a", Kind::Update, 2));
        assert_eq!(Told::parse(&line("delivered")), None);
    }
}

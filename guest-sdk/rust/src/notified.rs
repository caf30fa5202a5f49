//! One log line for each notification, so that tests can read which notifications a plugin received.

use std::fmt::Display;

use crate::log::{Level, log};
use crate::{Added, Deleted, ObjectRef, Synced, Updated};

/// Logs a notification as the line `notified`, at level info.
///
/// The pairs of the line are `type` (`add`, `update`, `delete`, `synced`), `subscription`, `namespace`,
/// `name`, `uid` and `resource-version` of the object, one pair for the type (`initial`,
/// `old-resource-version`, `unknown` or `remaining`), and those of the caller.
pub trait Notified {
    /// Writes the line.
    fn log(&self, pairs: &[(&str, &dyn Display)]);
}

// === impl Notified ===

impl Notified for Added {
    fn log(&self, pairs: &[(&str, &dyn Display)]) {
        line("add", &self.subscription, Some(&self.object), ("initial", &self.is_in_initial_list), pairs);
    }
}

impl Notified for Updated {
    fn log(&self, pairs: &[(&str, &dyn Display)]) {
        let old = &self.old_resource_version;
        line("update", &self.subscription, Some(&self.object), ("old-resource-version", old), pairs);
    }
}

impl Notified for Deleted {
    fn log(&self, pairs: &[(&str, &dyn Display)]) {
        line("delete", &self.subscription, Some(&self.object), ("unknown", &self.final_state_unknown), pairs);
    }
}

impl Notified for Synced {
    fn log(&self, pairs: &[(&str, &dyn Display)]) {
        line("synced", &self.subscription, None, ("remaining", &self.remaining), pairs);
    }
}

fn line(
    kind: &str,
    subscription: &str,
    object: Option<&ObjectRef>,
    of_kind: (&str, &dyn Display),
    pairs: &[(&str, &dyn Display)],
) {
    let mut all: Vec<(&str, &dyn Display)> = vec![("type", &kind), ("subscription", &subscription)];
    if let Some(object) = object {
        let ObjectRef { namespace, name, uid, resource_version } = object;
        all.extend::<[(&str, &dyn Display); 4]>([
            ("namespace", namespace),
            ("name", name),
            ("uid", uid),
            ("resource-version", resource_version),
        ]);
    }
    all.push(of_kind);
    all.extend_from_slice(pairs);
    log(Level::Info, "notified", &all);
}

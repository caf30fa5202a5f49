//! One log line for each notification, from which an observer can tell what a plugin was told.

use std::fmt::Display;

use crate::log::{Level, log};
use crate::{Added, Deleted, ObjectRef, Synced, Updated};

/// Logs a notification as the line `notified`, at level info.
///
/// Its pairs are `type` (`add`, `update`, `delete`, `synced`), `subscription`, what identifies the object (`namespace`, `name`, `uid`,
/// `resource-version`), what is particular to the type (`initial`; `old-resource-version`; `unknown`; `remaining`), and
/// the caller's own.
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
        let old = &self.old.resource_version;
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
    particular: (&str, &dyn Display),
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
    all.push(particular);
    all.extend_from_slice(pairs);
    log(Level::Info, "notified", &all);
}

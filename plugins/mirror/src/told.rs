//! One log line for each notification, from which an observer can tell what this plugin was told.

use oarlock_sdk::{Added, Deleted, ObjectRef, Synced, Updated, info};

pub(crate) fn added(added: &Added) {
    line(
        "add",
        &added.subscription,
        &added.object,
        ("initial", &added.is_in_initial_list.to_string()),
    );
}

pub(crate) fn updated(updated: &Updated) {
    let old = ("old-resource-version", updated.old.resource_version.as_str());
    line("update", &updated.subscription, &updated.object, old);
}

pub(crate) fn deleted(deleted: &Deleted) {
    line(
        "delete",
        &deleted.subscription,
        &deleted.object,
        ("unknown", &deleted.final_state_unknown.to_string()),
    );
}

pub(crate) fn synced(synced: &Synced) {
    info!(
        "notified",
        "type" = "synced",
        "subscription" = synced.subscription,
        "remaining" = synced.remaining
    );
}

fn line(kind: &str, subscription: &str, object: &ObjectRef, (name, value): (&str, &str)) {
    oarlock_sdk::log::log(
        oarlock_sdk::log::Level::Info,
        "notified",
        &[
            ("type", &kind),
            ("subscription", &subscription),
            ("namespace", &object.namespace),
            ("name", &object.name),
            ("uid", &object.uid),
            ("resource-version", &object.resource_version),
            (name, &value),
        ],
    );
}

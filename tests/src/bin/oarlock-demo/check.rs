//! The subscriptions of the sample plugins, as their documentation describes them, checked against the
//! recorded history.

use std::collections::BTreeMap;

use oarlock_tests::chain_check::{Subscription, Violation, check};
use oarlock_tests::received::ReceivedNotification;
use oarlock_tests::recorder::History;
use serde_json::Value;

use crate::stage::{HELLOS, SWAPPED};

/// Returns every notification that was lost, repeated, reordered or invented.
pub(crate) fn violations(
    histories: &BTreeMap<&str, History>,
    received: &[ReceivedNotification],
) -> Vec<Violation> {
    let hello = |object: &Value| object["metadata"]["labels"]["app"] == "hello";
    let source = |object: &Value| has_annotation(object, "oarlock.dev/mirror-to");
    let copy = |object: &Value| has_annotation(object, "oarlock.dev/mirrored-from");
    let any = |_: &Value| true;

    let mut violations = Vec::new();
    let mut check_one =
        |resource: &str, plugin: &str, name: &str, matches: &dyn Fn(&Value) -> bool, stateless| {
            let subscription = Subscription { plugin, name, matches, stateless };
            if let Some(history) = histories.get(resource) {
                violations.extend(check(&subscription, history, received));
            }
        };
    for plugin in HELLOS.iter().chain(&[SWAPPED]) {
        check_one("configmaps", plugin, "configmaps", &hello, false);
    }
    check_one("configmaps", "mirror", "configmap-sources", &source, true);
    check_one("configmaps", "mirror", "configmap-copies", &copy, true);
    check_one("secrets", "mirror", "secret-sources", &source, true);
    check_one("secrets", "mirror", "secret-copies", &copy, true);
    check_one("namespaces", "mirror", "namespaces", &any, true);
    violations
}

fn has_annotation(object: &Value, name: &str) -> bool {
    object["metadata"]["annotations"].get(name).is_some_and(|value| !value.is_null())
}

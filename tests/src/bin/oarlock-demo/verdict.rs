//! Which plugin should have been told of what, as somebody who only read the samples' documentation understands it.

use std::collections::BTreeMap;

use oarlock_tests::judge::{Watcher, judge};
use oarlock_tests::recorder::History;
use oarlock_tests::told::Told;
use serde_json::Value;

use crate::stage::{CHANGELING, HELLOS};

/// Returns everything that was lost, doubled, disordered or invented.
pub(crate) fn faults(histories: &BTreeMap<&str, History>, told: &[Told]) -> Vec<String> {
    let hello = |object: &Value| object["metadata"]["labels"]["app"] == "hello";
    let source = |object: &Value| has_annotation(object, "oarlock.dev/mirror-to");
    let copy = |object: &Value| has_annotation(object, "oarlock.dev/mirrored-from");
    let any = |_: &Value| true;

    let mut faults = Vec::new();
    let mut look =
        |resource: &str, plugin: &str, subscription: &str, matches: &dyn Fn(&Value) -> bool, stateless| {
            let watcher = Watcher { plugin, subscription, matches, stateless };
            if let Some(history) = histories.get(resource) {
                faults.extend(judge(&watcher, history, told));
            }
        };
    for plugin in HELLOS.iter().chain(&[CHANGELING]) {
        look("configmaps", plugin, "configmaps", &hello, false);
    }
    look("configmaps", "mirror", "configmap-sources", &source, true);
    look("configmaps", "mirror", "configmap-copies", &copy, true);
    look("secrets", "mirror", "secret-sources", &source, true);
    look("secrets", "mirror", "secret-copies", &copy, true);
    look("namespaces", "mirror", "namespaces", &any, true);
    faults
}

fn has_annotation(object: &Value, name: &str) -> bool {
    object["metadata"]["annotations"].get(name).is_some_and(|value| !value.is_null())
}

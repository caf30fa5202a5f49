//! The notifications that a hello plugin received, by its own log, compared with what exists.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::rig::Rig;

/// Returns the objects that one generation of a plugin knows, as name and resourceVersion, sorted.
///
/// # Panics
///
/// When the notifications of an object form no chain (promise 2).
pub(crate) fn state(lines: &[Value], plugin: &str, generation: u64) -> Vec<(String, String)> {
    let mut objects: BTreeMap<String, String> = BTreeMap::new();
    let notified = lines.iter().filter(|line| {
        line["event"] == "guest-log"
            && line["message"] == "notified"
            && line["plugin"] == plugin
            && line["generation"] == generation
    });
    for line in notified {
        let pair = |name: &str| line["pairs"][name].as_str().unwrap_or_default().to_owned();
        let name = pair("name");
        match pair("type").as_str() {
            "add" => {
                assert_eq!(objects.insert(name, pair("resource-version")), None, "added twice: {line}");
            }
            "update" => {
                let before = objects.insert(name, pair("resource-version"));
                assert_eq!(before, Some(pair("old-resource-version")), "a gap: {line}");
            }
            // A generation may receive the delete of an object that the one before it knew.
            "delete" => {
                let was_known = objects.remove(&name).is_some();
                assert!(was_known || generation > 1, "deleted without an add: {line}");
            }
            _ => {}
        }
    }
    objects.into_iter().collect()
}

/// Returns the types of the notifications that a plugin received of one object.
pub(crate) fn types_of(rig: &Rig, plugin: &str, name: &str) -> Vec<String> {
    let lines = rig.lines();
    let notified = lines.iter().filter(|line| {
        line["message"] == "notified" && line["plugin"] == plugin && line["pairs"]["name"] == name
    });
    notified.map(|line| line["pairs"]["type"].as_str().unwrap_or_default().to_owned()).collect()
}

/// Waits until a generation knows exactly the objects that exist.
pub(crate) async fn until_current(rig: &Rig, plugin: &str, generation: u64) {
    let wanted = rig.existing().await;
    rig.until(|lines| state(lines, plugin, generation) == wanted).await;
}

//! What a hello plugin was told, by its own account, and whether it is what happened.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::rig::Rig;

/// Where one generation of a plugin stands: its objects, as name and resourceVersion, sorted.
///
/// # Panics
///
/// When what it was told of an object is no continuous story (promise 2).
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
            // A generation may be told of the end of what the one before it knew.
            "delete" => {
                let was_known = objects.remove(&name).is_some();
                assert!(was_known || generation > 1, "deleted without an add: {line}");
            }
            _ => {}
        }
    }
    objects.into_iter().collect()
}

/// What a plugin received of one object, by the type of the notification.
pub(crate) fn of(rig: &Rig, plugin: &str, name: &str) -> Vec<String> {
    let lines = rig.lines();
    let notified = lines.iter().filter(|line| {
        line["message"] == "notified" && line["plugin"] == plugin && line["pairs"]["name"] == name
    });
    notified.map(|line| line["pairs"]["type"].as_str().unwrap_or_default().to_owned()).collect()
}

/// Waits until what a generation was told is what there is.
pub(crate) async fn converges(rig: &Rig, plugin: &str, generation: u64) {
    let wanted = rig.there_is().await;
    rig.until(|lines| state(lines, plugin, generation) == wanted).await;
}

//! The status of a definition: its names are accepted, its resource is established.

use super::text;
use serde_json::{Value, json};

/// Writes the status of a definition whose names are free, at once. On a real cluster controllers do this.
pub(crate) fn establish(crd: &mut Value, now: &str) {
    let since = |crd: &Value, of_type: &str| {
        super::list(crd, "/status/conditions")
            .iter()
            .find(|one| text(one, "/type") == of_type && text(one, "/status") == "True")
            .map_or(now, |one| text(one, "/lastTransitionTime"))
            .to_owned()
    };
    let conditions = json!([
        {"type": "NamesAccepted", "status": "True", "lastTransitionTime": since(crd, "NamesAccepted"),
         "reason": "NoConflicts", "message": "no conflicts found"},
        {"type": "Established", "status": "True", "lastTransitionTime": since(crd, "Established"),
         "reason": "InitialNamesAccepted", "message": "the initial names have been accepted"},
    ]);
    let mut stored = super::strings(crd, "/status/storedVersions");
    for version in super::list(crd, "/spec/versions") {
        let name = text(version, "/name").to_owned();
        if version.get("storage") == Some(&Value::Bool(true)) && !stored.contains(&name) {
            stored.push(name);
        }
    }
    crd["status"] = json!({
        "conditions": conditions, "acceptedNames": crd["spec"]["names"], "storedVersions": stored,
    });
}

/// Returns whether a definition's resource is served.
pub(crate) fn established(crd: &Value) -> bool {
    super::list(crd, "/status/conditions")
        .iter()
        .any(|one| text(one, "/type") == "Established" && text(one, "/status") == "True")
}

//! The audit log of an API server: which user changed what, and as whom.

use std::fs;
use std::path::Path;

use anyhow::{Context, ensure};
use serde_json::Value;

/// The user that the host is.
pub const HOST: &str = "system:serviceaccount:oarlock-system:oarlock";

/// What the host writes as itself: its Lease, statuses, Events and questions about rights. All else it writes
/// as the account of a plugin.
const OWN_WRITES: [(&str, &str); 9] = [
    ("leases", ""),
    ("plugins", "status"),
    ("clusterplugins", "status"),
    ("events", ""),
    ("tokenreviews", ""),
    ("subjectaccessreviews", ""),
    ("selfsubjectaccessreviews", ""),
    ("selfsubjectrulesreviews", ""),
    ("selfsubjectreviews", ""),
];

/// Returns the lines of an audit log. A line that is not complete yet is null.
///
/// # Errors
///
/// When the file cannot be read.
pub fn lines(log: &Path) -> anyhow::Result<Vec<Value>> {
    let text = fs::read_to_string(log).with_context(|| format!("cannot read {}", log.display()))?;
    Ok(text.lines().map(|line| serde_json::from_str(line).unwrap_or_default()).collect())
}

/// Returns whether the API server carried the request out.
#[must_use]
pub fn succeeded(line: &Value) -> bool {
    line["responseStatus"]["code"].as_u64().is_some_and(|code| code < 300)
}

/// Checks a line: what the host wrote without impersonation is its own.
///
/// # Errors
///
/// With the line, if it is not.
pub fn check_host_wrote_its_own(line: &Value) -> anyhow::Result<()> {
    let is_of_host = line["user"]["username"] == HOST && line["impersonatedUser"].is_null();
    let is_write =
        ["create", "update", "patch", "delete", "deletecollection"].iter().any(|it| line["verb"] == *it);
    if !is_of_host || !is_write {
        return Ok(());
    }
    let text = |key: &str| line["objectRef"][key].as_str().unwrap_or_default();
    let object = (text("resource"), text("subresource"));
    ensure!(OWN_WRITES.contains(&object), "the host wrote as itself: {line}");
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn line(user: &str, impersonated: Option<&str>, verb: &str, resource: &str, subresource: &str) -> Value {
        json!({
            "user": {"username": user}, "impersonatedUser": impersonated.map(|it| json!({"username": it})), "verb": verb,
            "objectRef": {"resource": resource, "subresource": subresource}, "responseStatus": {"code": 201},
        })
    }

    #[test]
    fn the_host_writes_its_own_objects_as_itself_and_no_others() {
        let check = |user: &str, as_whom: Option<&str>, verb: &str, resource: &str, subresource: &str| {
            check_host_wrote_its_own(&line(user, as_whom, verb, resource, subresource)).is_ok()
        };
        assert!(check(HOST, None, "update", "leases", ""));
        assert!(check(HOST, None, "patch", "plugins", "status"));
        assert!(!check(HOST, None, "patch", "plugins", ""), "a spec is its author's");
        assert!(!check(HOST, None, "create", "configmaps", ""));
        assert!(check(HOST, Some("system:serviceaccount:team-a:hello"), "create", "configmaps", ""));
        assert!(check("admin", None, "create", "configmaps", ""));
        assert!(check(HOST, None, "watch", "configmaps", ""));
    }
}

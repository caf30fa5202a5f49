//! Which hosts wrote for the plugin, as the audit log has it.

use std::fs;

use anyhow::{Result, ensure};
use serde_json::Value;

use crate::cluster::Cluster;

/// The user that the plugin's writes are made as.
const PLUGIN: &str = "system:serviceaccount:mirror:mirror";

/// The user that the host is.
const HOST: &str = "system:serviceaccount:oarlock-system:oarlock";

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

/// Returns the length of the audit log, in lines.
pub(super) fn n_audited(cluster: &Cluster) -> Result<usize> {
    Ok(fs::read_to_string(cluster.node.audit_log())?.lines().count())
}

/// Checks in the audit log that only the host that had the Lease wrote for the plugin, and that the host
/// wrote nothing for it as itself. On a slow machine a leader may lose its Lease without a fault, so hosts
/// may write in turns.
pub(super) fn check_only_leaders_wrote(cluster: &Cluster, begun_at: usize) -> Result<()> {
    let log = fs::read_to_string(cluster.node.audit_log())?;
    // The last line may not be complete yet.
    let lines = log.lines().map(|line| serde_json::from_str::<Value>(line).unwrap_or_default());
    let mut holder = None;
    let mut n_writes = 0;
    for (n, line) in lines.enumerate() {
        let host = &line["sourceIPs"][0];
        let object = &line["objectRef"];
        check_writes_as_itself(&line)?;
        if line["responseStatus"]["code"].as_u64().is_none_or(|code| code >= 300) {
            continue;
        }
        if object["resource"] == "leases" && object["name"] == "oarlock" {
            holder = Some(host.clone());
        }
        let is_write = line["impersonatedUser"]["username"] == PLUGIN && object["resource"] == "configmaps";
        if is_write && n >= begun_at {
            n_writes += 1;
            let (name, at) = (&object["name"], &line["requestReceivedTimestamp"]);
            ensure!(
                holder.as_ref() == Some(host),
                "{host} wrote {name} at {at}, while the Lease was that of {holder:?}"
            );
        }
    }
    ensure!(n_writes > 0, "no write of {PLUGIN} is in the audit log");
    Ok(())
}

/// Checks a line of the audit log: what the host writes without impersonation is its own.
fn check_writes_as_itself(line: &Value) -> Result<()> {
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

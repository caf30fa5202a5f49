//! Which hosts wrote for the plugin, as the audit log has it.

use anyhow::{Result, ensure};
use oarlock_tests::audit;

use crate::cluster::Cluster;

/// The user that the plugin's writes are made as.
const PLUGIN: &str = "system:serviceaccount:mirror:mirror";

/// Returns the length of the audit log, in lines.
pub(super) fn n_audited(cluster: &Cluster) -> Result<usize> {
    Ok(audit::lines(&cluster.node.audit_log())?.len())
}

/// Checks in the audit log that only the host that had the Lease wrote for the plugin, and that the host
/// wrote nothing for it as itself. On a slow machine a leader may lose its Lease without a fault, so hosts
/// may write in turns.
pub(super) fn check_only_leaders_wrote(cluster: &Cluster, begun_at: usize) -> Result<()> {
    let mut holder = None;
    let mut n_writes = 0;
    for (n, line) in audit::lines(&cluster.node.audit_log())?.into_iter().enumerate() {
        let host = &line["sourceIPs"][0];
        let object = &line["objectRef"];
        audit::check_host_wrote_its_own(&line)?;
        if !audit::succeeded(&line) {
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

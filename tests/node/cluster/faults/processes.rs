//! Processes that are killed, and a network that is cut.

use std::time::{Duration, Instant};

use anyhow::Result;
use oarlock_node::Component;

use crate::cluster::{Cluster, Pod};
use crate::upgrades;

use super::{Begun, Fault};

impl Begun<'_> {
    pub(super) async fn kill_hosts(self, fault: Fault) -> Result<(Duration, Instant)> {
        let Self { cluster, load, leader, standby, .. } = self;
        let killed = match fault {
            Fault::Leader | Fault::Terminated => vec![leader],
            Fault::Standby => vec![standby],
            _ => vec![leader, standby],
        };
        let signal = if matches!(fault, Fault::Terminated) { "TERM" } else { "KILL" };
        for pod in &killed {
            cluster.signal(pod, signal)?;
        }
        // Not earlier: what was created before the fault may have its copy in spite of it.
        let fault_at = Instant::now();
        let gap = load.first_copy_since(fault_at).await?;
        for pod in &killed {
            cluster.until_restarted(pod)?;
        }
        Ok((gap, fault_at))
    }

    /// Replaces both replicas. The recorder of the load measures the gap.
    pub(super) async fn roll_out(self, fault: Fault) -> Result<(Duration, Instant)> {
        let Self { cluster, load, .. } = self;
        let fault_at = Instant::now();
        if matches!(fault, Fault::Upgrade) {
            upgrades::to_previous(cluster)?;
            upgrades::until_complete(cluster).await?;
            upgrades::to_current(cluster)?;
        } else {
            upgrades::restart(cluster)?;
        }
        let gap = load.first_copy_since(fault_at).await?;
        upgrades::until_complete(cluster).await?;
        Ok((gap, fault_at))
    }

    pub(super) async fn kill_component(self, fault: Fault) -> Result<(Duration, Instant)> {
        let Self { cluster, load, leader, .. } = self;
        let component = if matches!(fault, Fault::Etcd) { Component::Etcd } else { Component::ApiServer };
        let process = cluster.process(&leader)?;
        cluster.node.kill(component)?;
        if matches!(fault, Fault::Outage) {
            cluster.until_ended(&process)?;
        }
        let fault_at = Instant::now();
        cluster.node.start_component(component)?;
        Ok((load.first_copy_since(fault_at).await?, fault_at))
    }

    pub(super) async fn partition(self) -> Result<(Duration, Instant)> {
        let Self { cluster, load, leader, .. } = self;
        // The packets of the Pod for the API server go to an address of the link that no one has.
        in_network(
            cluster,
            &leader,
            "ip neigh replace 10.0.0.1 lladdr 02:00:00:00:00:01 dev eth0 nud permanent",
        )?;
        in_network(cluster, &leader, "ip route replace 10.0.0.1/32 dev eth0")?;
        let gap = load.first_copy_since(Instant::now()).await?;
        in_network(cluster, &leader, "ip route delete 10.0.0.1/32 dev eth0")?;
        in_network(cluster, &leader, "ip neigh delete 10.0.0.1 dev eth0")?;
        Ok((gap, Instant::now()))
    }
}

fn in_network(cluster: &Cluster, pod: &Pod, command: &str) -> Result<()> {
    let network = cluster.network(pod)?;
    let network = format!("--net={network}");
    cluster.node.run("nsenter", [network.as_str(), "--"].into_iter().chain(command.split(' '))).map(drop)
}

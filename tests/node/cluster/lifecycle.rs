//! What a cluster does to the host: probes and drains.

use std::time::Instant;

use anyhow::{Context, Result, ensure};

use crate::cluster::{Cluster, LABEL, pods};
use crate::load::Load;

/// A leader that is stopped answers no probe. The standby takes over, and the kubelet restarts the leader.
pub(crate) async fn hang(cluster: &mut Cluster) -> Result<()> {
    let (leader, _) = cluster.leader_and_standby()?;
    let load = Load::start(&cluster.api.client);
    load.first_copy_since(Instant::now()).await?;
    cluster.signal(&leader, "STOP")?;
    let takeover = load.first_copy_since(Instant::now()).await?;
    cluster.until_restarted(&leader)?;
    let report = load.finish().await?.check()?;
    eprintln!("hang: the standby took over after {takeover:.1?}; {report}");
    Ok(())
}

pub(crate) async fn drain(cluster: &mut Cluster) -> Result<()> {
    let load = Load::start(&cluster.api.client);
    load.first_copy_since(Instant::now()).await?;
    let before = pods(&cluster.node)?;
    let selector = format!("--pod-selector={LABEL}");
    let drained =
        cluster.node.kubectl(["drain", "node", &selector, "--delete-emptydir-data", "--timeout=20s"]);
    // There is no other node for the evicted replica, so the other one stays.
    let error = format!("{:#}", drained.err().context("the drain evicted both replicas")?);
    ensure!(error.contains("violate the pod's disruption budget"), "{error}");
    let left: Vec<_> = pods(&cluster.node)?.into_iter().filter(|pod| pod.is_ready()).collect();
    ensure!(left.len() == 1 && before.iter().any(|pod| pod.uid() == left[0].uid()), "{left:?}");
    let alone_at = Instant::now();
    load.first_copy_since(alone_at).await?;
    cluster.node.kubectl(["uncordon", "node"])?;
    cluster.until_ready().await?;
    let report = load.finish().await?.check()?;
    eprintln!("drain: {report}");
    Ok(())
}

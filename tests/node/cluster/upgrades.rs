//! Rolling updates of the host while objects change.

use std::time::Instant;

use anyhow::{Result, ensure};

use crate::cluster::{Cluster, NAMESPACE, pods};
use crate::load::{Load, Report};

pub(crate) async fn rolling(cluster: &mut Cluster) -> Result<()> {
    let before = pods(&cluster.node)?;
    let report = under_load(cluster, &["rollout", "restart", "deployment/oarlock"]).await?;
    let after = pods(&cluster.node)?;
    ensure!(
        after.iter().all(|pod| before.iter().all(|old| old.uid() != pod.uid())),
        "a Pod was not replaced"
    );
    eprintln!("rolling update: {report}");
    Ok(())
}

pub(crate) async fn upgrade(cluster: &mut Cluster) -> Result<()> {
    for image in [cluster.images.previous.clone(), cluster.images.current.clone()] {
        let digest = cluster.node.run("crane", ["digest", &image])?;
        let set = format!("oarlock={image}");
        let report = under_load(cluster, &["set", "image", "deployment/oarlock", &set]).await?;
        for pod in pods(&cluster.node)? {
            ensure!(pod.image_id().ends_with(digest.trim()), "{} is not {digest}", pod.image_id());
        }
        eprintln!("to {image}: {report}");
    }
    Ok(())
}

/// Changes the Deployment while objects change, and waits until the roll-out is complete.
async fn under_load(cluster: &mut Cluster, change: &[&str]) -> Result<Report> {
    let load = Load::start(&cluster.api.client);
    load.first_copy_since(Instant::now()).await?;
    let namespace = ["--namespace", NAMESPACE];
    cluster.node.kubectl(change.iter().chain(&namespace))?;
    let status = ["rollout", "status", "deployment/oarlock", "--timeout=300s"];
    cluster.node.kubectl(status.iter().chain(&namespace))?;
    cluster.until_ready().await?;
    load.first_copy_since(Instant::now()).await?;
    load.finish().await
}

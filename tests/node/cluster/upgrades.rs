//! Rolling updates of the host while objects change. A recorder judges each version of a copy.

use std::path::Path;
use std::process::Command;
use std::time::Instant;

use anyhow::{Result, ensure};
use oarlock_tests::host_process::binary;
use oarlock_tests::tool::output;

use crate::cluster::{Cluster, NAMESPACE, pods};
use crate::install::apply;
use crate::load::{Load, Report};

pub(crate) async fn rolling(cluster: &mut Cluster) -> Result<()> {
    let before = pods(&cluster.node)?;
    let report = under_load(cluster, restart).await?;
    let after = pods(&cluster.node)?;
    ensure!(
        after.iter().all(|pod| before.iter().all(|old| old.uid() != pod.uid())),
        "a Pod was not replaced"
    );
    eprintln!("rolling update: {report}");
    Ok(())
}

pub(crate) async fn upgrade(cluster: &mut Cluster) -> Result<()> {
    let report = under_load(cluster, to_previous).await?;
    eprintln!("to the version before: {report}");
    let report = under_load(cluster, to_current).await?;
    eprintln!("to this version: {report}");
    Ok(())
}

/// Replaces both replicas by others of the same version.
pub(crate) fn restart(cluster: &Cluster) -> Result<()> {
    cluster.node.kubectl(["rollout", "restart", "deployment/oarlock", "--namespace", NAMESPACE]).map(drop)
}

/// Installs the version before: its objects, its CustomResourceDefinitions and its image.
pub(crate) fn to_previous(cluster: &Cluster) -> Result<()> {
    install(cluster, &cluster.images.program_of_previous, &cluster.images.previous)
}

/// Installs this version over the one before.
pub(crate) fn to_current(cluster: &Cluster) -> Result<()> {
    install(cluster, &binary("oarlock")?, &cluster.images.current)
}

fn install(cluster: &Cluster, program: &Path, image: &str) -> Result<()> {
    let objects = output(Command::new(program).args(["install", "--print", "--image", image]))?;
    apply(&cluster.node, &objects)
}

/// Waits until a roll-out is complete, and all Pods have the image of the Deployment.
pub(crate) async fn until_complete(cluster: &mut Cluster) -> Result<()> {
    let deployment = ["deployment/oarlock", "--namespace", NAMESPACE];
    cluster.node.kubectl(["rollout", "status", "--timeout=300s"].iter().chain(&deployment))?;
    cluster.until_ready().await?;
    let image = "--output=jsonpath={.spec.template.spec.containers[0].image}";
    let image = cluster.node.kubectl(["get", image].iter().chain(&deployment))?;
    let digest = cluster.node.run("crane", ["digest", image.trim()])?;
    for pod in pods(&cluster.node)? {
        ensure!(pod.image_id().ends_with(digest.trim()), "{} is not {digest}", pod.image_id());
    }
    Ok(())
}

/// Changes the installation while objects change, and waits until the roll-out is complete.
async fn under_load(cluster: &mut Cluster, change: fn(&Cluster) -> Result<()>) -> Result<Report> {
    let load = Load::start_recorded(&cluster.api.client).await?;
    load.first_copy_since(Instant::now()).await?;
    change(cluster)?;
    until_complete(cluster).await?;
    load.first_copy_since(Instant::now()).await?;
    load.finish().await?.check()
}

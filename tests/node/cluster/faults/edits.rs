//! The spec of the Plugin changes 100 times a second, each time to another configuration.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use futures::{StreamExt, stream};
use serde_json::{Value, json};
use tokio::time::MissedTickBehavior;

use crate::cluster::Cluster;
use crate::install::{plugin, until_condition};

use super::Begun;

const PATH: &str = "/apis/oarlock.dev/v1alpha1/namespaces/mirror/plugins/mirror";
const EDITS: u64 = 2_000;
const PERIOD: Duration = Duration::from_millis(10);
/// How many edits may be under way at once.
const AT_ONCE: usize = 16;

impl Begun<'_> {
    pub(super) async fn edit(self) -> Result<(Duration, Instant)> {
        let Self { cluster, load, .. } = self;
        let begun_at = Instant::now();
        let before = plugin(&cluster.node, "mirror", "mirror")?;
        // The first copy since the first edit was made while others went on.
        let (edited, gap) = tokio::join!(edit(cluster), load.first_copy_since(begun_at));
        edited?;
        let per_second = EDITS as f64 / begun_at.elapsed().as_secs_f64();
        cluster.api.request("PATCH", PATH, Some(&json!({"spec": before["spec"]}))).await?;
        let ended_at = Instant::now();
        eprintln!("{per_second:.0} edits a second");

        cluster.node.wait("a status about the last edit", |node| {
            let plugin = plugin(node, "mirror", "mirror")?;
            let [seen, last] = [&plugin["status"]["observedGeneration"], &plugin["metadata"]["generation"]];
            ensure!(seen == last, "generation {seen} of {last} is observed");
            let generations = number(&before)? + EDITS;
            ensure!(number(&plugin)? > generations, "generation {last}: the edits changed no spec");
            Ok(())
        })?;
        until_condition(&mut cluster.node, "mirror", "mirror", "Ready", "Serving")?;
        until_condition(&mut cluster.node, "mirror", "mirror", "Degraded", "AsExpected")?;
        Ok((gap?, ended_at))
    }
}

async fn edit(cluster: &Cluster) -> Result<()> {
    let mut ticks = tokio::time::interval(PERIOD);
    // A tick that is late is not left out, so that all edits take as long as they should.
    ticks.set_missed_tick_behavior(MissedTickBehavior::Burst);
    let ticks = stream::unfold(ticks, async |mut ticks| {
        ticks.tick().await;
        Some(((), ticks))
    });
    let edits = ticks.zip(stream::iter(1..=EDITS)).map(async |((), n)| {
        let excluded = json!(["kube-system", "kube-public", "kube-node-lease", format!("edit-{n}")]);
        let spec = json!({"spec": {"config": {"excludedNamespaces": excluded}}});
        cluster.api.request("PATCH", PATH, Some(&spec)).await
    });
    let mut edits = std::pin::pin!(edits.buffer_unordered(AT_ONCE));
    while let Some(edited) = edits.next().await {
        edited?;
    }
    Ok(())
}

fn number(plugin: &Value) -> Result<u64> {
    plugin["metadata"]["generation"].as_u64().context("a Plugin has a generation")
}

//! The specs of ten Plugins change 100 times a second in all, each time to another configuration. One of them
//! makes the copies. One object alone takes some 30 writes a second: each waits for the one before. Most of
//! the work is the API server's: builds on the same machine slow it down. The rate is in the result.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use futures::future::try_join_all;
use oarlock_node::Node;
use serde_json::{Value, json};
use tokio::time::MissedTickBehavior;

use crate::cluster::Cluster;
use crate::install::{apply, plugin, until_condition};

use super::Begun;

const NAMESPACE: &str = "mirror";
const MIRROR: &str = "mirror";
/// How many Plugins are edited. One of them makes the copies.
const N_PLUGINS: u32 = 10;
const EDITS_OF_EACH: u64 = 200;
/// The pause between two edits: a little shorter than for 100 a second, so that a late one costs nothing.
const PERIOD: Duration = Duration::from_millis(9);

pub(super) fn install(cluster: &mut Cluster) -> Result<()> {
    let component = oarlock_built_guests::component("hello-rust");
    let file = format!("--from-file=hello.wasm={}", component.display());
    cluster.node.kubectl(["create", "configmap", "hello", "--namespace", NAMESPACE, &file])?;
    let mut plugins = String::new();
    for name in others() {
        let _ = writeln!(
            plugins,
            "---\n{{apiVersion: oarlock.dev/v1alpha1, kind: Plugin, metadata: {{name: {name}, namespace: {NAMESPACE}}}, \
             spec: {{source: {{configMap: {{name: hello, key: hello.wasm}}}}, serviceAccountName: mirror}}}}",
        );
    }
    apply(&cluster.node, &plugins)?;
    others().try_for_each(|name| until_condition(&mut cluster.node, NAMESPACE, &name, "Ready", "Serving"))
}

pub(super) fn remove(cluster: &Cluster) -> Result<()> {
    for name in others() {
        cluster.node.kubectl(["delete", "plugin", &name, "--namespace", NAMESPACE])?;
    }
    cluster.node.kubectl(["delete", "configmap", "hello", "--namespace", NAMESPACE]).map(drop)
}

impl Begun<'_> {
    pub(super) async fn edit(self) -> Result<(Duration, Instant)> {
        let Self { cluster, stage, load, .. } = self;
        let before = all().map(|name| number(&cluster.node, &name)).collect::<Result<Vec<_>>>()?;
        let spec_before = plugin(&cluster.node, NAMESPACE, MIRROR)?["spec"].take();
        let begun_at = Instant::now();
        // The first copy since the first edit was made while others went on.
        let (edited, gap) = tokio::join!(edit(cluster), load.first_copy_since(begun_at));
        edited?;
        let per_second = (EDITS_OF_EACH * u64::from(N_PLUGINS)) as f64 / begun_at.elapsed().as_secs_f64();
        cluster.api.request("PATCH", &path(MIRROR), Some(&json!({"spec": spec_before}))).await?;
        let ended_at = Instant::now();
        stage.edits_per_second = Some(per_second);
        eprintln!("{per_second:.0} edits a second");

        for (name, before) in all().zip(before) {
            let last = number(&cluster.node, &name)?;
            ensure!(last >= before + EDITS_OF_EACH, "{name}: {before} to {last}: the edits changed no spec");
            cluster.node.wait("a status about the last edit", |node| {
                let seen = plugin(node, NAMESPACE, &name)?["status"]["observedGeneration"].take();
                ensure!(seen == last, "{name}: generation {seen} of {last} is observed");
                Ok(())
            })?;
            until_condition(&mut cluster.node, NAMESPACE, &name, "Ready", "Serving")?;
            until_condition(&mut cluster.node, NAMESPACE, &name, "Degraded", "AsExpected")?;
        }
        Ok((gap?, ended_at))
    }
}

/// Edits all Plugins in turns. No edit of a Plugin begins before the one before is accepted: the API server
/// would try one of two again and again, and be slower for it.
async fn edit(cluster: &Cluster) -> Result<()> {
    let begun_at = tokio::time::Instant::now();
    let plugins = all().zip(0..).map(async |(name, turn)| {
        let mut ticks = tokio::time::interval_at(begun_at + PERIOD * turn, PERIOD * N_PLUGINS);
        // A tick that is late is not left out, so that all edits take as long as they should.
        ticks.set_missed_tick_behavior(MissedTickBehavior::Burst);
        for n in 1..=EDITS_OF_EACH {
            ticks.tick().await;
            let config = if name == MIRROR {
                let excluded = json!(["kube-system", "kube-public", "kube-node-lease", format!("edit-{n}")]);
                json!({"excludedNamespaces": excluded})
            } else {
                json!({"edit": n})
            };
            cluster.api.request("PATCH", &path(&name), Some(&json!({"spec": {"config": config}}))).await?;
        }
        Ok(())
    });
    try_join_all(plugins).await.map(drop)
}

fn all() -> impl Iterator<Item = String> {
    std::iter::once(MIRROR.to_owned()).chain(others())
}

fn others() -> impl Iterator<Item = String> {
    (1..N_PLUGINS).map(|n| format!("edited-{n}"))
}

fn path(name: &str) -> String {
    format!("/apis/oarlock.dev/v1alpha1/namespaces/{NAMESPACE}/plugins/{name}")
}

fn number(node: &Node, name: &str) -> Result<u64> {
    let plugin: Value = plugin(node, NAMESPACE, name)?;
    plugin["metadata"]["generation"].as_u64().context("a Plugin has a generation")
}

//! Ten Plugins that lose their instance again and again.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use serde_json::Value;

use crate::cluster::Cluster;
use crate::install::{apply, plugin, until_condition};

use super::Begun;

const NAMESPACE: &str = "crash-loops";
const PLUGINS: usize = 10;
/// How many times each of them traps.
const CRASHES: usize = 20;

pub(super) fn install(cluster: &Cluster) -> Result<()> {
    apply(&cluster.node, include_str!("crash-loops.yaml"))?;
    let component = oarlock_built_guests::component("traps");
    let file = format!("--from-file=traps.wasm={}", component.display());
    cluster.node.kubectl(["create", "configmap", "traps", "--namespace", NAMESPACE, &file]).map(drop)
}

pub(super) fn remove(cluster: &Cluster) -> Result<()> {
    cluster.node.kubectl(["delete", "namespace", NAMESPACE]).map(drop)
}

impl Begun<'_> {
    pub(super) async fn crash_loops(self) -> Result<(Duration, Instant)> {
        let Self { cluster, load, .. } = self;
        let mut plugins = String::new();
        for n in 0..PLUGINS {
            let _ = writeln!(
                plugins,
                "---\n{{apiVersion: oarlock.dev/v1alpha1, kind: Plugin, metadata: {{name: traps-{n}, namespace: {NAMESPACE}}}, \
                 spec: {{source: {{configMap: {{name: traps, key: traps.wasm}}}}, serviceAccountName: traps}}}}",
            );
        }
        apply(&cluster.node, &plugins)?;
        for n in 0..PLUGINS {
            until_condition(&mut cluster.node, NAMESPACE, &format!("traps-{n}"), "Ready", "Serving")?;
        }
        // Each creation makes all ten trap.
        let fault_at = Instant::now();
        for _ in 0..CRASHES {
            cluster.node.kubectl(["delete", "configmap", "panic", "--namespace", NAMESPACE])?;
            cluster.node.kubectl(["create", "configmap", "panic", "--namespace", NAMESPACE])?;
        }
        let gap = load.first_copy_since(fault_at).await?;
        for n in 0..PLUGINS {
            cluster.node.wait("a Plugin that says why it crashes", |node| {
                let status = plugin(node, NAMESPACE, &format!("traps-{n}"))?["status"].take();
                let mut conditions = status["conditions"].as_array().into_iter().flatten();
                let is_degraded = |it: &Value| it["type"] == "Degraded" && it["status"] == "True";
                let error = status["lastError"]["message"].as_str().unwrap_or_default();
                ensure!(conditions.any(is_degraded) && error.contains("the guest trapped"), "{status}");
                Ok(())
            })?;
        }
        let ended_at = Instant::now();
        cluster.node.kubectl(["delete", "plugins", "--all", "--namespace", NAMESPACE])?;
        let left = cluster.node.kubectl(["get", "plugins", "--namespace", NAMESPACE, "-o", "name"])?;
        ensure!(left.is_empty(), "{left}");
        Ok((gap, ended_at))
    }
}

//! Writes ConfigMaps to an API server: the load of `cargo xtask bench languages`.

use std::path::PathBuf;

use anyhow::{Context, Result};
use futures::StreamExt as _;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Patch, PatchParams, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, Config};
use serde_json::json;

/// How many requests are sent at the same time.
const CONCURRENT: usize = 4;

/// Creates ConfigMaps in the namespace `default`, and changes each.
#[derive(clap::Args)]
pub(crate) struct Args {
    #[arg(long)]
    kubeconfig: PathBuf,
    /// The number of ConfigMaps.
    #[arg(long)]
    objects: usize,
    /// How often each is changed.
    #[arg(long)]
    updates: usize,
}

pub(crate) async fn run(args: Args) -> Result<()> {
    let Args { kubeconfig, objects, updates } = args;
    let kubeconfig = Kubeconfig::read_from(&kubeconfig)?;
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
    let api: Api<ConfigMap> = Api::namespaced(Client::try_from(config)?, "default");
    for round in 0..=updates {
        let mut writes =
            futures::stream::iter(0..objects).map(|n| write(&api, n, round)).buffer_unordered(CONCURRENT);
        while let Some(written) = writes.next().await {
            written?;
        }
    }
    Ok(())
}

async fn write(api: &Api<ConfigMap>, n: usize, round: usize) -> Result<()> {
    let name = format!("settings-{n}");
    let data = json!({"round": round.to_string(), "text": "x".repeat(400)});
    if round == 0 {
        // The plugin `mirror` looks at it, and finds no namespace to copy it to.
        let annotations = json!({"oarlock.dev/mirror-to": ""});
        let object = json!({"metadata": {"name": name, "annotations": annotations}, "data": data});
        let object = serde_json::from_value(object)?;
        api.create(&PostParams::default(), &object).await.with_context(|| format!("cannot create {name}"))?;
    } else {
        let patch = Patch::Merge(json!({ "data": data }));
        api.patch(&name, &PatchParams::default(), &patch)
            .await
            .with_context(|| format!("cannot change {name}"))?;
    }
    Ok(())
}

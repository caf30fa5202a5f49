//! The informer with a real API server: memory at rest, and the latency of writes.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result};
use kube::config::{KubeConfigOptions, Kubeconfig};
use oarlock_informer::{ListenerConfig, SharedInformer, list_watch::transport, listener::Outcome};
use oarlock_measure::{Meter, Record};
use serde_json::json;
use tokio::task::block_in_place;
use tokio_util::sync::CancellationToken;

use crate::subject::{self, Kept};

/// Syncs all Pods.
#[derive(clap::Args)]
pub(crate) struct Args {
    #[arg(long)]
    kubeconfig: PathBuf,
    /// The number of Pods.
    #[arg(long)]
    objects: u64,
    #[arg(long, value_enum, default_value = "default")]
    kept: Kept,
}

/// Follows the ConfigMaps that a writer changes.
#[derive(clap::Args)]
pub(crate) struct Follow {
    #[arg(long)]
    kubeconfig: PathBuf,
    /// The number of updates.
    #[arg(long)]
    writes: usize,
}

pub(crate) async fn run(args: Args) -> Result<Record> {
    let Args { kubeconfig, objects, kept } = args;
    let informer = subject::informer(client(kubeconfig).await?, "pods", kept)?;
    let mut listener = informer.add_listener(ListenerConfig::default())?;
    let mut meter = block_in_place(Meter::begin)?;
    let _stop = start(&informer);
    for _ in 0..objects {
        let delivery = listener.next().await.context("the informer stopped")?;
        listener.finish(&delivery.key, Outcome::Done);
    }
    block_in_place(|| meter.synced(objects))?;
    Ok(meter.record())
}

/// Prints a line at the sync, and at the end a line with the time of each version.
#[expect(clippy::print_stdout, reason = "the readings are what is asked for")]
pub(crate) async fn follow(args: Follow) -> Result<()> {
    let Follow { kubeconfig, writes } = args;
    let informer = subject::informer(client(kubeconfig).await?, "configmaps", Kept::Default)?;
    let mut listener = informer.add_listener(ListenerConfig::default())?;
    let _stop = start(&informer);
    informer.wait_for_sync().await;
    println!("{}", json!({"event": "ready"}));
    let mut heard = BTreeMap::new();
    while heard.len() < writes {
        let delivery = listener.next().await.context("the informer stopped")?;
        let at = SystemTime::now().duration_since(UNIX_EPOCH)?.as_nanos() as u64;
        let object = delivery.notification.object();
        if delivery.notification.old().is_some() && object.key().name().starts_with("written-") {
            heard.insert(object.resource_version().to_owned(), at);
        }
        listener.finish(&delivery.key, Outcome::Done);
    }
    println!("{}", json!({"heard": heard}));
    Ok(())
}

/// Connects as the host does.
async fn client(kubeconfig: PathBuf) -> Result<kube::Client> {
    let kubeconfig = Kubeconfig::read_from(kubeconfig)?;
    let config = kube::Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
    Ok(transport::client(config)?)
}

/// Runs the informer until the returned guard is dropped.
fn start(informer: &SharedInformer) -> tokio_util::sync::DropGuard {
    let token = CancellationToken::new();
    let (informer, child) = (informer.clone(), token.clone());
    tokio::spawn(async move { informer.run(child).await });
    token.drop_guard()
}

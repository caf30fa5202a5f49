//! Measures the reflector of kube-rs with its default configuration and jemalloc.
//!
//! Each run prints its readings as one line of JSON, like `oarlock-bench`.

#![forbid(unsafe_code)]

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::hash::Hash;
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result};
use futures::{Stream, StreamExt};
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::api::DynamicObject;
use kube::config::Kubeconfig;
use kube::core::{ApiResource, PartialObjectMeta};
use kube::runtime::WatchStreamExt;
use kube::runtime::reflector::{self, store::Writer};
use kube::runtime::watcher::{self, Event};
use kube::{Api, Client, Resource};
use oarlock_measure::{Control, Meter, Plan};
use tokio::sync::watch;

#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

#[derive(clap::Parser)]
struct Args {
    /// The synthetic API server.
    #[arg(long, required_unless_present = "kubeconfig", default_value = "")]
    server: String,
    /// A real API server instead.
    #[arg(long)]
    kubeconfig: Option<PathBuf>,
    /// The number of Pods of the real API server.
    #[arg(long, default_value_t = 0)]
    objects: u64,
    /// Follows this many updates of ConfigMaps of the real API server, and nothing else.
    #[arg(long)]
    follow: Option<usize>,
    #[arg(long = "as", value_enum, default_value = "typed")]
    kind: Kind,
    /// The greatest number of events.
    #[arg(long)]
    events: Option<u64>,
}

#[derive(Clone, Copy, PartialEq, clap::ValueEnum)]
enum Kind {
    Typed,
    Dynamic,
    Metadata,
}

/// The progress of the handler.
#[derive(Clone, Copy, Default)]
struct Heard {
    objects: u64,
    last: bool,
}

#[tokio::main]
async fn main() -> Result<()> {
    let Args { server, kubeconfig, objects, follow, kind, events } = clap::Parser::parse();
    let (client, control, plan) = match kubeconfig {
        Some(path) => {
            let config =
                kube::Config::from_custom_kubeconfig(Kubeconfig::read_from(path)?, &Default::default())
                    .await?;
            let plan = Plan { objects, events: 0, last_resource_version: String::new() };
            (Client::try_from(config)?, None, plan)
        }
        None => {
            let control = Control::new(&server)?;
            let form = if kind == Kind::Metadata { "metadata-json" } else { "json" };
            let plan = control.prepare("pods", form, events)?;
            (Client::try_from(kube::Config::new(server.parse()?))?, Some(control), plan)
        }
    };
    if let Some(writes) = follow {
        return hear_of(client, writes).await;
    }
    let config = watcher::Config::default();
    let resource = ApiResource::erase::<Pod>(&());
    match kind {
        Kind::Typed => {
            let events = watcher::watcher(Api::<Pod>::all(client), config);
            run(control, plan, events, Writer::default()).await
        }
        Kind::Dynamic => {
            let events = watcher::watcher(Api::<DynamicObject>::all_with(client, &resource), config);
            run(control, plan, events, Writer::new(resource)).await
        }
        Kind::Metadata => {
            let events = watcher::watcher(Api::<PartialObjectMeta<Pod>>::all(client), config);
            run(control, plan, events, Writer::<PartialObjectMeta<Pod>>::default()).await
        }
    }
}

async fn run<K>(
    control: Option<Control>,
    plan: Plan,
    events: impl Stream<Item = watcher::Result<Event<K>>> + Send + 'static,
    writer: Writer<K>,
) -> Result<()>
where
    K: Resource + Clone + Debug + Send + Sync + 'static,
    K::DynamicType: Clone + Eq + Hash + Send + Sync,
{
    let mut meter = Meter::begin()?;
    let store: reflector::Store<K> = writer.as_reader();
    let (sender, mut heard) = watch::channel(Heard::default());
    let last_version = plan.last_resource_version.clone();
    let n_objects = plan.objects;
    tokio::spawn(async move {
        let mut events = std::pin::pin!(events.default_backoff().reflect(writer));
        let mut so_far = Heard::default();
        while let Some(event) = events.next().await {
            match event {
                Ok(Event::InitApply(_)) => so_far.objects += 1,
                Ok(Event::InitDone) if so_far.objects == n_objects => drop(sender.send_replace(so_far)),
                Ok(Event::Apply(object))
                    if object.meta().resource_version.as_ref() == Some(&last_version) =>
                {
                    so_far.last = true;
                    sender.send_replace(so_far);
                }
                Ok(_) => {}
                Err(error) => eprintln!("kube-rs: {error}"),
            }
        }
    });
    heard.wait_for(|heard| heard.objects == n_objects).await.context("the reflector ended")?;
    tokio::task::block_in_place(|| meter.synced(plan.objects))?;
    if let Some(control) = control {
        meter.begin_events();
        tokio::task::block_in_place(|| control.post("start"))?;
        heard.wait_for(|heard| heard.last).await.context("the reflector ended")?;
        tokio::task::block_in_place(|| meter.events_ended(plan.events))?;
    }
    anyhow::ensure!(store.len() as u64 == plan.objects, "{} objects are cached", store.len());
    println!("{}", serde_json::to_string(&meter.record())?);
    Ok(())
}

/// Prints a line at the sync, and at the end a line with the time of each version.
async fn hear_of(client: Client, writes: usize) -> Result<()> {
    let (reader, writer) = reflector::store::<ConfigMap>();
    let events = watcher::watcher(Api::<ConfigMap>::all(client), watcher::Config::default());
    let mut events = std::pin::pin!(events.default_backoff().reflect(writer));
    let mut heard = BTreeMap::new();
    while heard.len() < writes {
        let event = events.next().await.context("the reflector ended")?;
        let at = SystemTime::now().duration_since(UNIX_EPOCH)?.as_nanos() as u64;
        match event {
            Ok(Event::InitDone) => println!("{}", serde_json::json!({"event": "ready"})),
            Ok(Event::Apply(map)) if map.data.is_some() => {
                let meta = map.metadata;
                if meta.name.is_some_and(|name| name.starts_with("written-")) {
                    heard.insert(meta.resource_version.unwrap_or_default(), at);
                }
            }
            Ok(_) => {}
            Err(error) => eprintln!("kube-rs: {error}"),
        }
    }
    drop(reader);
    println!("{}", serde_json::json!({"heard": heard}));
    Ok(())
}

//! kube-rs' reflector under measurement, as its users make it: default configuration, jemalloc.
//!
//! Each run prints its readings as one line of JSON, as `oarlock-bench` does.

#![forbid(unsafe_code)]

use std::fmt::Debug;
use std::hash::Hash;

use anyhow::{Context, Result};
use futures::{Stream, StreamExt};
use k8s_openapi::api::core::v1::Pod;
use kube::api::DynamicObject;
use kube::core::{ApiResource, PartialObjectMeta};
use kube::runtime::reflector::{self, store::Writer};
use kube::runtime::watcher::{self, Event};
use kube::runtime::WatchStreamExt;
use kube::{Api, Client, Resource};
use oarlock_measure::{Control, Meter, Plan};
use tokio::sync::watch;

#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

#[derive(clap::Parser)]
struct Args {
    /// The synthetic API server.
    #[arg(long)]
    server: String,
    #[arg(long = "as", value_enum)]
    kind: Kind,
    /// No more than so many.
    #[arg(long)]
    events: Option<u64>,
}

#[derive(Clone, Copy, PartialEq, clap::ValueEnum)]
enum Kind {
    Typed,
    Dynamic,
    Metadata,
}

/// What the handler has heard of.
#[derive(Clone, Copy, Default)]
struct Heard {
    objects: u64,
    last: bool,
}

#[tokio::main]
async fn main() -> Result<()> {
    let Args { server, kind, events } = clap::Parser::parse();
    let control = Control::new(&server)?;
    let form = if kind == Kind::Metadata { "metadata-json" } else { "json" };
    let plan = control.prepare("pods", form, events)?;
    let client = Client::try_from(kube::Config::new(server.parse()?))?;
    let config = watcher::Config::default();
    let resource = ApiResource::erase::<Pod>(&());
    match kind {
        Kind::Typed => {
            let events = watcher::watcher(Api::<Pod>::all(client), config);
            run(&control, plan, events, Writer::default()).await
        }
        Kind::Dynamic => {
            let events = watcher::watcher(Api::<DynamicObject>::all_with(client, &resource), config);
            run(&control, plan, events, Writer::new(resource)).await
        }
        Kind::Metadata => {
            let events = watcher::watcher(Api::<PartialObjectMeta<Pod>>::all(client), config);
            run(&control, plan, events, Writer::<PartialObjectMeta<Pod>>::default()).await
        }
    }
}

async fn run<K>(
    control: &Control,
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
    meter.begin_events();
    tokio::task::block_in_place(|| control.post("start"))?;
    heard.wait_for(|heard| heard.last).await.context("the reflector ended")?;
    tokio::task::block_in_place(|| meter.events_ended(plan.events))?;
    anyhow::ensure!(store.len() as u64 == plan.objects, "{} objects are cached", store.len());
    println!("{}", serde_json::to_string(&meter.record())?);
    Ok(())
}

//! Informers of several resources from one factory: created once, started once, stopped together.
//!
//! `cargo run -p oarlock-informer --example informer_factory`, against the cluster of your kubeconfig.

#![allow(clippy::print_stdout, reason = "an example talks to its reader")]
#![allow(clippy::disallowed_methods, reason = "here the tasks are in plain sight")]

#[path = "support/scratch.rs"]
mod scratch;

use std::collections::BTreeMap;
use std::time::Duration;

use oarlock_informer::toolkit::informers::{ApiSource, Config, Tweak};
use oarlock_informer::toolkit::wait::cancelled;
use oarlock_informer::{
    GroupVersionResource, ListenerConfig,
    object::ObjectKey,
    toolkit::{cache::HandlerFunctions, informers::InformerFactory},
};
use oarlock_label_selector::LabelSelector;
use scratch::{Result, Scratch, config_maps, show};
use tokio::sync::mpsc::unbounded_channel;
use tokio_util::sync::CancellationToken;

#[tokio::main]
async fn main() -> Result {
    let scratch = Scratch::create("informer-factory").await?;
    scratch.put_in("default", "first", "hello").await?;
    scratch.put_in("kube-public", "second", "good morning").await?;

    // The tweak changes every list and watch request after the reflector has set its options.
    let selector = scratch.selector()?;
    let factory = InformerFactory::new(
        ApiSource::new(scratch.client()),
        Config {
            tweak: Some(Tweak::new(move |mut options| *options.label_selector() = selector.clone())),
            custom_resync: BTreeMap::from([(config_maps(), Duration::from_secs(1))]),
            ..Config::default()
        },
    );

    // The first call creates the informer; later calls return the same one. It does not run yet.
    let secrets = GroupVersionResource::new("", "v1", "secrets");
    let lister = factory.lister(&config_maps());
    let (sender, mut calls) = unbounded_channel();
    let handler = HandlerFunctions::new().on_update(move |old, new| {
        let _ = sender.send(format!(
            "{}, {} object",
            show(new),
            if old.is_same(new) { "the same" } else { "another" }
        ));
    });
    let deliver = factory.informer(&config_maps()).add_event_handler(ListenerConfig::default(), handler)?;
    let _ = factory.informer(&secrets);
    tokio::spawn(deliver);

    // The factory passes futures to the caller, who spawns them. The second call has no informer left to
    // start.
    let token = CancellationToken::new();
    for _ in 0..2 {
        println!("start:");
        factory.start(&token, |resource, run| {
            println!("  {resource}");
            tokio::spawn(run);
        });
    }
    let synced = factory.wait_for_cache_sync(cancelled(&token)).await;
    for (resource, has_synced) in &synced.synced {
        println!("{resource} has synced: {has_synced}");
    }
    synced.into_result()?;

    for namespace in ["default", "kube-public", "kube-system"] {
        let listed = lister.namespace(namespace).list(&LabelSelector::everything());
        println!("in {namespace}: {:?}", listed.iter().map(|object| object.key().name()).collect::<Vec<_>>());
    }
    if let Err(not_found) = lister.get(&ObjectKey::new("default", "third")) {
        println!("{not_found}");
    }

    // After a second the handlers get every cached object again, without a request to the server.
    println!("resync:");
    let mut again = vec![calls.recv().await, calls.recv().await];
    again.sort();
    again.into_iter().flatten().for_each(|update| println!("  {update}"));

    // The token stops the informers; `shut_down` waits for their end.
    token.cancel();
    factory.shut_down().await;
    factory.start(&CancellationToken::new(), |resource, _| println!("{resource} is started again"));
    println!("stopped: {:?}", factory.informer(&secrets).lifecycle());
    scratch.clear().await
}

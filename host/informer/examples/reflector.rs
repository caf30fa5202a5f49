//! The reflector fills the queue and follows the server. Whether deletes arrive depends on the known objects
//! of the queue.
//!
//! `cargo run -p oarlock-informer --example reflector`, against the cluster of your kubeconfig.

#![allow(clippy::print_stdout, reason = "an example talks to its reader")]

#[path = "support/scratch.rs"]
mod scratch;

use std::sync::Arc;

use oarlock_informer::delta_fifo::{Config, Processed};
use oarlock_informer::indexer::IndexerWriter;
use oarlock_informer::{
    delta_fifo::{Delta, DeltaFifo},
    reflector::{self, Reflector},
};
use scratch::{Result, Scratch, show};
use tokio_util::sync::CancellationToken;

#[tokio::main]
async fn main() -> Result {
    let scratch = Scratch::create("reflector").await?;

    println!("-- the queue alone");
    follow(&scratch, Arc::new(DeltaFifo::new(Config::default())), None).await?;

    println!("-- the queue, and a cache that it may ask");
    let cache = IndexerWriter::new();
    let known_objects = Arc::new(cache.indexer().clone());
    let fifo = DeltaFifo::new(Config { known_objects: Some(known_objects), ..Config::default() });
    follow(&scratch, Arc::new(fifo), Some(cache)).await
}

async fn follow(scratch: &Scratch, fifo: Arc<DeltaFifo>, mut cache: Option<IndexerWriter>) -> Result {
    scratch.put("early", "I was here before").await?;
    let list_watch = Arc::new(scratch.list_watch()?);
    let reflector = Reflector::new(list_watch, fifo.clone(), reflector::Config::default());
    let token = CancellationToken::new();
    let story = async {
        pop(&fifo, &mut cache).await?;
        println!("early is deleted, late is created");
        scratch.delete("early").await?;
        scratch.put("late", "and I came after").await?;
        // Without a cache the queue does not know the objects that it has delivered, and drops their deletes.
        while pop(&fifo, &mut cache).await? != "late" {}
        Ok(())
    };
    // The reflector is a future: it runs while it is polled, here beside the steps of the example.
    let result = tokio::select! {
        result = story => result,
        () = reflector.run(&token) => Ok(()),
    };
    scratch.clear().await?;
    result
}

/// Waits for the changes of one object and prints them; returns its name.
async fn pop(fifo: &DeltaFifo, cache: &mut Option<IndexerWriter>) -> Result<String> {
    let mut name = String::new();
    fifo.pop(|key, deltas, _| {
        name = key.name().to_owned();
        for delta in deltas.as_slice() {
            match delta {
                Delta::Added(new) => println!("Added: {}", show(new)),
                Delta::Updated(new) => println!("Updated: {}", show(new)),
                // An object of a list: it may be new, changed or unchanged.
                Delta::Replaced(new) => println!("Replaced: {}", show(new)),
                Delta::Sync(new) => println!("Sync: {}", show(new)),
                Delta::Deleted(deleted) => {
                    println!("Deleted: {}", deleted.last_known().map(show).unwrap_or_default())
                }
            }
            let Some(cache) = cache else { continue };
            match delta {
                Delta::Deleted(deleted) => drop(cache.delete(key, deleted.last_known())),
                newer => drop(newer.last_known().map(|new| cache.put(new.clone()))),
            }
        }
        Processed::Done
    })
    .await?;
    Ok(name)
}

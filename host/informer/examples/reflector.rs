//! The reflector fills the queue and keeps up with the server. What it can say of deletes depends on what the queue knows.
//!
//! `cargo run -p oarlock-informer --example reflector`, against the cluster of your kubeconfig.

#![allow(clippy::print_stdout, reason = "an example talks to its reader")]

#[path = "support/corner.rs"]
mod corner;

use std::sync::Arc;

use corner::{Corner, Result, show};
use oarlock_informer::delta_fifo::{Config, Processed};
use oarlock_informer::indexer::IndexerWriter;
use oarlock_informer::{
    delta_fifo::{Delta, DeltaFifo},
    reflector::{self, Reflector},
};
use tokio_util::sync::CancellationToken;

#[tokio::main]
async fn main() -> Result {
    let corner = Corner::enter("reflector").await?;

    println!("-- the queue alone");
    follow(&corner, Arc::new(DeltaFifo::new(Config::default())), None).await?;

    println!("-- the queue, and a cache that it may ask");
    let cache = IndexerWriter::new();
    let known_objects = Arc::new(cache.indexer().clone());
    let fifo = DeltaFifo::new(Config { known_objects: Some(known_objects), ..Config::default() });
    follow(&corner, Arc::new(fifo), Some(cache)).await
}

async fn follow(corner: &Corner, fifo: Arc<DeltaFifo>, mut cache: Option<IndexerWriter>) -> Result {
    corner.put("early", "I was here before").await?;
    let list_watch = Arc::new(corner.list_watch()?);
    let reflector = Reflector::new(list_watch, fifo.clone(), reflector::Config::default());
    let token = CancellationToken::new();
    let story = async {
        pop(&fifo, &mut cache).await?;
        println!("early is deleted, late is created");
        corner.delete("early").await?;
        corner.put("late", "and I came after").await?;
        // Without a cache the queue has forgotten what it handed out, and drops the delete of it.
        while pop(&fifo, &mut cache).await? != "late" {}
        Ok(())
    };
    // The reflector is a future: it runs for as long as it is polled, here beside the story.
    let told = tokio::select! {
        told = story => told,
        () = reflector.run(&token) => Ok(()),
    };
    corner.leave().await?;
    told
}

/// Waits for one object's changes and shows them; returns the object's name.
async fn pop(fifo: &DeltaFifo, cache: &mut Option<IndexerWriter>) -> Result<String> {
    let mut name = String::new();
    fifo.pop(|key, deltas, _| {
        name = key.name().to_owned();
        for delta in deltas.as_slice() {
            match delta {
                Delta::Added(new) => println!("Added: {}", show(new)),
                Delta::Updated(new) => println!("Updated: {}", show(new)),
                // What a list brings: it may be new, changed, or as it was.
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

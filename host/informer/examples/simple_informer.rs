//! An informer by hand: list and watch, reflector, queue and cache, and three functions on top.
//!
//! `cargo run -p oarlock-informer --example simple_informer`, against the cluster of your kubeconfig.

#![allow(clippy::print_stdout, reason = "an example talks to its reader")]

#[path = "support/scratch.rs"]
mod scratch;

use std::sync::Arc;

use oarlock_informer::delta_fifo::{Config, Processed, Watermark};
use oarlock_informer::indexer::IndexerWriter;
use oarlock_informer::{
    Object,
    delta_fifo::{Delta, DeltaFifo},
    reflector,
    toolkit::cache::Controller,
};
use scratch::{Result, Scratch, show};
use tokio_util::sync::CancellationToken;

#[tokio::main]
async fn main() -> Result {
    let scratch = Scratch::create("simple-informer").await?;
    scratch.put("first", "hello").await?;

    let mut cache = IndexerWriter::new();
    let indexer = cache.indexer().clone();
    let known_objects = Arc::new(indexer.clone());
    let fifo = Arc::new(DeltaFifo::new(Config { known_objects: Some(known_objects), ..Config::default() }));
    // The controller is the loop: its reflector fills the queue, and it passes each list of deltas to the
    // function below.
    let controller =
        Controller::new(Arc::new(scratch.list_watch()?), fifo.clone(), reflector::Config::default());
    let token = CancellationToken::new();
    let run = controller.run(&token, |key, deltas, is_in_initial_list| {
        for delta in deltas.as_slice() {
            match delta {
                // The cache decides between add and update, not the delta. It changes before the handlers are
                // called.
                Delta::Added(new) | Delta::Updated(new) | Delta::Replaced(new) | Delta::Sync(new) => {
                    match cache.put(new.clone()) {
                        None => on_add(new, is_in_initial_list),
                        Some(old) => on_update(&old, new),
                    }
                }
                Delta::Deleted(deleted) => {
                    let old = cache.delete(key, deleted.last_known());
                    if let Some(last) = deleted.last_known().or(old.as_ref()) {
                        on_delete(last, deleted.is_tombstone());
                    }
                }
            }
        }
        Ok(Processed::Done)
    });

    let story = async {
        // Waits until the whole first list is processed.
        fifo.watermark().wait_for(Watermark::has_synced).await?;
        println!("synced, the cache holds {} object(s)", indexer.len());
        scratch.put("second", "good morning").await?;
        scratch.put("second", "good evening").await?;
        scratch.delete("second").await?;
        let last = scratch.put("third", "and good night").await?;
        // The queue has the version up to which all events are processed.
        let is_processed = |watermark: &Watermark| watermark.resource_version().as_deref() == Some(&*last);
        fifo.watermark().wait_for(is_processed).await?;
        println!("the cache holds {:?}", indexer.keys());
        token.cancel();
        scratch.clear().await
    };
    tokio::join!(run, story).1
}

fn on_add(new: &Object, is_in_initial_list: bool) {
    let initial = if is_in_initial_list { ", part of the first list" } else { "" };
    println!("on_add: {}{initial}", show(new));
}

fn on_update(old: &Object, new: &Object) {
    println!("on_update: {}, was {}", show(new), show(old));
}

fn on_delete(last: &Object, final_state_unknown: bool) {
    let unknown = if final_state_unknown { ", the deletion itself was missed" } else { "" };
    println!("on_delete: {}{unknown}", show(last));
}

//! The queue alone: pushes, pops, and the need for a cache.
//!
//! `cargo run -p oarlock-informer --example delta_fifo`; it needs no server.

#![allow(clippy::print_stdout, reason = "an example talks to its reader")]

use std::error::Error;
use std::sync::Arc;

use oarlock_informer::delta_fifo::{Config, Processed};
use oarlock_informer::indexer::IndexerWriter;
use oarlock_informer::{
    Object,
    delta_fifo::{Delta, DeltaFifo},
};

fn main() -> Result<(), Box<dyn Error>> {
    // The queue reads the known objects from the cache. Without it, it drops the delete of an object that it
    // has delivered.
    let mut cache = IndexerWriter::new();
    let known_objects = Arc::new(cache.indexer().clone());
    let fifo = DeltaFifo::new(Config { known_objects: Some(known_objects), ..Config::default() });

    println!("push: web added, web updated, db added");
    fifo.add(pod("web", 1)?)?;
    fifo.update(pod("web", 2)?)?;
    fifo.add(pod("db", 3)?)?;
    println!("{} keys wait, in the order in which they first came", fifo.len());
    while pop(&fifo, &mut cache)? {}

    println!("push: web updated");
    fifo.update(pod("web", 4)?)?;
    // The queue delivers the new object only. The cache has the old one until the new one is stored.
    pop(&fifo, &mut cache)?;

    println!("push: web deleted, and an unknown pod");
    fifo.delete(pod("web", 5)?)?;
    fifo.delete(pod("unknown", 6)?)?;
    while pop(&fifo, &mut cache)? {}

    println!("push: db updated; this time it cannot be processed at once");
    fifo.update(pod("db", 7)?)?;
    fifo.try_pop(|key, _, _| {
        println!("pop {key}: put back");
        Processed::Requeue
    })?;
    while pop(&fifo, &mut cache)? {}
    Ok(())
}

/// Pops the changes of one object, prints them, and stores the newest state in the cache. Returns false when
/// the queue is empty.
fn pop(fifo: &DeltaFifo, cache: &mut IndexerWriter) -> Result<bool, Box<dyn Error>> {
    let popped = fifo.try_pop(|key, deltas, _| {
        let changes: Vec<_> = deltas.as_slice().iter().map(show).collect();
        println!("pop {key}: {}", changes.join(", "));
        let old = match deltas.newest() {
            Delta::Deleted(deleted) => cache.delete(key, deleted.last_known()),
            newest => newest.last_known().and_then(|new| cache.put(new.clone())),
        };
        let old = old.as_ref().map_or_else(|| "nothing".to_owned(), version);
        println!("  the newest is {}, the cache had {old}", show(deltas.newest()));
        Processed::Done
    })?;
    Ok(popped)
}

fn show(delta: &Delta) -> String {
    let (change, object) = match delta {
        Delta::Added(object) => ("Added", Some(object)),
        Delta::Updated(object) => ("Updated", Some(object)),
        Delta::Replaced(object) => ("Replaced", Some(object)),
        Delta::Sync(object) => ("Sync", Some(object)),
        // A tombstone replaces a missed deletion.
        Delta::Deleted(deleted) => ("Deleted", deleted.last_known()),
    };
    format!("{change} {}", object.map(version).unwrap_or_default())
}

fn version(object: &Object) -> String {
    format!("{}@{}", object.key().name(), object.resource_version())
}

fn pod(name: &str, version: u32) -> Result<Object, Box<dyn Error>> {
    let text = format!(
        r#"{{"apiVersion":"v1","kind":"Pod","metadata":{{"namespace":"default","name":"{name}","resourceVersion":"{version}"}}}}"#
    );
    Ok(Object::parse(text.as_bytes(), None)?)
}

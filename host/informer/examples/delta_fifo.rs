//! The queue alone: what is pushed, what is popped, and what it cannot know.
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
    // The queue asks the cache which objects are known, or it would drop the delete of an object that it has handed out.
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
    // Only the new object comes out. What it was before stands in the cache, as long as nobody has put the new one there.
    pop(&fifo, &mut cache)?;

    println!("push: web deleted, and a pod that nobody has heard of");
    fifo.delete(pod("web", 5)?)?;
    fifo.delete(pod("nobody", 6)?)?;
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

/// Pops one object's changes, shows them, and moves the newest state into the cache. Answers false when nothing waits.
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
        // Where the deletion itself was missed, a tombstone stands for it.
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

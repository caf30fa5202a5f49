//! The interface to the API server: one list, then a watch from its version.
//!
//! `cargo run -p oarlock-informer --example list_watch`, against the cluster of your kubeconfig.

#![allow(clippy::print_stdout, reason = "an example talks to its reader")]

#[path = "support/scratch.rs"]
mod scratch;

use std::time::Duration;

use futures::StreamExt;
use oarlock_informer::list_watch::ListWatch;
use oarlock_informer::list_watch::{ListOptions, WatchEvent, WatchOptions};
use scratch::{Result, Scratch, show};

#[tokio::main]
async fn main() -> Result {
    let scratch = Scratch::create("list-watch").await?;
    scratch.put("first", "hello").await?;
    let list_watch = scratch.list_watch()?;

    // A list has a page of objects and the version of the whole list.
    let page = list_watch.list(ListOptions::default(), &|object| object).await?;
    for object in &page.items {
        println!("listed: {}", show(object));
    }

    // A watch sends the events after a version: with the version of the list, no event is missing.
    let options = WatchOptions {
        resource_version: page.resource_version,
        timeout: Duration::from_secs(60),
        ..WatchOptions::default()
    };
    let mut events = list_watch.watch(options).await?;
    scratch.put("second", "good morning").await?;
    scratch.put("second", "good evening").await?;
    scratch.delete("second").await?;
    for _ in 0..3 {
        match events.next().await.ok_or("the server ended the watch")?? {
            WatchEvent::Added(object) => println!("ADDED: {}", show(&object)),
            WatchEvent::Modified(object) => println!("MODIFIED: {}", show(&object)),
            WatchEvent::Deleted(object) => println!("DELETED: {}", show(&object)),
            other => println!("{other:?}"),
        }
    }

    // The connection may break, the version may expire, the server may ask to retry later. The reflector
    // handles these cases: see the next example.
    scratch.clear().await
}

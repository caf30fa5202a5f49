//! The seam to the API server: one list, then a watch from its version on.
//!
//! `cargo run -p oarlock-informer --example list_watch`, against the cluster of your kubeconfig.

#![allow(clippy::print_stdout, reason = "an example talks to its reader")]

#[path = "support/corner.rs"]
mod corner;

use std::time::Duration;

use corner::{Corner, Result, show};
use futures::StreamExt;
use oarlock_informer::list_watch::ListWatch;
use oarlock_informer::list_watch::{ListOptions, WatchEvent, WatchOptions};

#[tokio::main]
async fn main() -> Result {
    let corner = Corner::enter("list-watch").await?;
    corner.put("first", "hello").await?;
    let list_watch = corner.list_watch()?;

    // A list is a page of objects and the version of the whole.
    let page = list_watch.list(ListOptions::default(), &|object| object).await?;
    for object in &page.items {
        println!("listed: {}", show(object));
    }

    // A watch tells what happened after a version: with that of the list nothing falls between the two.
    let options = WatchOptions {
        resource_version: page.resource_version,
        timeout: Duration::from_secs(60),
        ..WatchOptions::default()
    };
    let mut events = list_watch.watch(options).await?;
    corner.put("second", "good morning").await?;
    corner.put("second", "good evening").await?;
    corner.delete("second").await?;
    for _ in 0..3 {
        match events.next().await.ok_or("the server ended the watch")?? {
            WatchEvent::Added(object) => println!("ADDED: {}", show(&object)),
            WatchEvent::Modified(object) => println!("MODIFIED: {}", show(&object)),
            WatchEvent::Deleted(object) => println!("DELETED: {}", show(&object)),
            other => println!("{other:?}"),
        }
    }

    // This is where the work begins: the connection drops, the version expires, the server asks to come back later. All
    // that is the reflector's, in the next example.
    corner.leave().await
}

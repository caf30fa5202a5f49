//! A shared informer without a server: the objects come out of a channel. Two handlers, one cache.
//!
//! `cargo run -p oarlock-informer --example simulate_shared`; it needs no server.

#![allow(clippy::print_stdout, reason = "an example talks to its reader")]

use std::error::Error;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use futures::StreamExt;
use futures::channel::mpsc::{UnboundedReceiver, UnboundedSender, unbounded};
use oarlock_informer::list_watch::{ItemHook, ListOptions, ListPage, WatchEvent, WatchOptions, WatchStream};
use oarlock_informer::shared_informer::Config;
use oarlock_informer::{
    GroupVersionResource, ListenerConfig, Object, SharedInformer,
    list_watch::{ApiError, ListWatch},
    toolkit::cache::HandlerFunctions,
};
use tokio_util::sync::CancellationToken;

/// A custom API server: the informer needs only [`ListWatch`].
struct Channel {
    listed: Vec<Object>,
    events: Mutex<Option<UnboundedReceiver<WatchEvent>>>,
}

#[async_trait]
impl ListWatch for Channel {
    async fn list(&self, _: ListOptions, keep: ItemHook<'_>) -> Result<ListPage, ApiError> {
        let items = self.listed.iter().cloned().map(keep).collect();
        Ok(ListPage { resource_version: "1".to_owned(), items, ..ListPage::default() })
    }

    async fn watch(&self, _: WatchOptions) -> Result<WatchStream, ApiError> {
        let events = self.events.lock().ok().and_then(|mut events| events.take());
        // A second watch gets no more events.
        let events = events.map(|events| events.map(Ok).boxed());
        Ok(events.unwrap_or_else(|| futures::stream::pending().boxed()))
    }

    /// Without this the reflector streams the initial objects in place of a list.
    fn supports_watch_list(&self) -> bool {
        false
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error + Send + Sync>> {
    let (server, events) = unbounded();
    let source = Channel { listed: vec![pod("a", 1)?], events: Mutex::new(Some(events)) };
    let informer =
        SharedInformer::new(Arc::new(source), Config::new(GroupVersionResource::new("", "v1", "pods")));

    // Each handler has its own backlog; they share the cache and the watch. Here they send their calls to
    // channels.
    let (first, mut first_calls) = recording();
    let (second, mut second_calls) = recording();
    let deliver_first = informer.add_event_handler(ListenerConfig::default(), first)?;
    let deliver_second = informer.add_event_handler(ListenerConfig::default(), second)?;

    let token = CancellationToken::new();
    let story = async {
        println!("a is listed");
        let steps = [
            ("b appears", WatchEvent::Added(pod("b", 2)?)),
            ("a changes", WatchEvent::Modified(pod("a", 3)?)),
            ("a goes", WatchEvent::Deleted(pod("a", 4)?)),
        ];
        for (what, event) in steps {
            println!("  first: {}; second: {}", next(&mut first_calls).await, next(&mut second_calls).await);
            println!("{what}");
            server.unbounded_send(event)?;
        }
        println!("  first: {}; second: {}", next(&mut first_calls).await, next(&mut second_calls).await);
        println!("the one cache holds {:?}", informer.indexer().keys());
        token.cancel();
        Ok(())
    };
    // The library spawns no task: informer and handlers are futures, and end together.
    tokio::join!(informer.run(token.clone()), deliver_first, deliver_second, story).3
}

/// Returns a handler of three functions, and the receiver of their calls.
fn recording() -> (HandlerFunctions, UnboundedReceiver<String>) {
    let (adds, calls) = unbounded();
    let (updates, deletes) = (adds.clone(), adds.clone());
    let handler = HandlerFunctions::new()
        .on_add(move |new, is_in_initial_list| {
            let initial = if is_in_initial_list { ", listed" } else { "" };
            record(&adds, format!("add {}{initial}", show(new)));
        })
        .on_update(move |old, new| record(&updates, format!("update {} to {}", show(old), show(new))))
        .on_delete(move |last, _| record(&deletes, format!("delete {}", show(last))));
    (handler, calls)
}

fn record(calls: &UnboundedSender<String>, what: String) {
    // The receiver is gone at the end of the example.
    let _ = calls.unbounded_send(what);
}

async fn next(calls: &mut UnboundedReceiver<String>) -> String {
    calls.next().await.unwrap_or_default()
}

fn show(object: &Object) -> String {
    format!("{}@{}", object.key().name(), object.resource_version())
}

fn pod(name: &str, version: u32) -> Result<Object, oarlock_informer::object::Error> {
    let text = format!(
        r#"{{"apiVersion":"v1","kind":"Pod","metadata":{{"namespace":"default","name":"{name}","resourceVersion":"{version}"}}}}"#
    );
    Object::parse(text.as_bytes(), None)
}

//! The usual controller: handlers add keys to a queue, workers reconcile the objects of the keys, and failed
//! keys are retried.
//!
//! `cargo run -p oarlock-informer --example work_queue`, against the cluster of your kubeconfig.

#![allow(clippy::print_stdout, reason = "an example talks to its reader")]

#[path = "support/scratch.rs"]
mod scratch;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use oarlock_informer::shared_informer::Config;
use oarlock_informer::{
    ListenerConfig, SharedInformer,
    object::ObjectKey,
    toolkit::{
        cache::{HandlerFunctions, Lister},
        workqueue::WorkQueue,
    },
};
use scratch::{Result, Scratch, config_maps, show};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio_util::sync::CancellationToken;

/// The log of the workers by key: two of them work concurrently, on different keys.
type Diary = Mutex<BTreeMap<ObjectKey, Vec<String>>>;

#[tokio::main]
async fn main() -> Result {
    let scratch = Scratch::create("work-queue").await?;
    for (name, greeting) in [("a", "hello"), ("b", "good morning"), ("stubborn", "not yet, and not yet")] {
        scratch.put(name, greeting).await?;
    }
    let informer = SharedInformer::new(Arc::new(scratch.list_watch()?), Config::new(config_maps()));

    // A handler only adds a key. A key that waits already is not added again.
    let queue = WorkQueue::<ObjectKey>::default();
    let [adds, updates, deletes] = [(); 3].map(|()| queue.clone());
    let handler = HandlerFunctions::new()
        .on_add(move |object, _| adds.add(object.key().clone()))
        .on_update(move |_, new| updates.add(new.key().clone()))
        .on_delete(move |object, _| deletes.add(object.key().clone()));
    let deliver = informer.add_event_handler(ListenerConfig::default(), handler)?;

    let diary = Diary::default();
    let lister = informer.lister();
    let (done, mut is_done) = unbounded_channel();
    let worker = || work(&queue, &lister, &diary, &done);
    let workers = async { tokio::join!(worker(), worker()) };
    let token = CancellationToken::new();
    let story = async {
        for _ in 0..3 {
            is_done.recv().await;
        }
        scratch.put("b", "good evening").await?;
        is_done.recv().await;
        scratch.delete("a").await?;
        is_done.recv().await;
        // The queue takes no new keys, and the keys in process are finished.
        queue.shut_down_with_drain().await;
        token.cancel();
        scratch.clear().await
    };
    let result = tokio::join!(informer.run(token.clone()), deliver, workers, story).3;
    for (key, entries) in diary.into_inner().unwrap_or_default() {
        println!("{key}:");
        entries.iter().for_each(|entry| println!("  {entry}"));
    }
    result
}

/// Works until the queue shuts down. A key has one worker at a time.
async fn work(
    queue: &WorkQueue<ObjectKey>,
    lister: &Lister,
    diary: &Diary,
    done: &UnboundedSender<ObjectKey>,
) {
    while let Some(key) = queue.get().await {
        let n_failures = queue.n_requeues(&key);
        let (entry, is_done) = sync(&key, n_failures, lister);
        note(diary, &key, entry);
        if is_done {
            // The next failure counts as the first one.
            queue.forget(&key);
            let _ = done.send(key.clone());
        } else {
            // 5 ms, then 10, then 20 …
            queue.add_rate_limited(key.clone());
        }
        queue.done(&key);
    }
}

/// Reconciles one object. It reads the current state and needs no event: therefore a key is enough.
fn sync(key: &ObjectKey, n_failures: u32, lister: &Lister) -> (String, bool) {
    match lister.get(key) {
        Ok(object) if key.name() == "stubborn" && n_failures < 2 => {
            (format!("failed at {}, {n_failures} failures before", show(&object)), false)
        }
        Ok(object) => (format!("done with {}", show(&object)), true),
        Err(not_found) => (format!("cleaned up: {not_found}"), true),
    }
}

fn note(diary: &Diary, key: &ObjectKey, entry: String) {
    if let Ok(mut diary) = diary.lock() {
        diary.entry(key.clone()).or_default().push(entry);
    }
}

//! A shared informer with a server: one watch and one cache for several handlers, one of which is added late.
//!
//! `cargo run -p oarlock-informer --example shared_informer`, against the cluster of your kubeconfig.

#![allow(clippy::print_stdout, reason = "an example talks to its reader")]

#[path = "support/scratch.rs"]
mod scratch;

use std::sync::Arc;

use oarlock_informer::shared_informer::Config;
use oarlock_informer::toolkit::wait::wait_for_cache_sync;
use oarlock_informer::{ListenerConfig, Object, SharedInformer, toolkit::cache::EventHandler};
use oarlock_label_selector::LabelSelector;
use scratch::{Result, Scratch, config_maps, show};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio_util::sync::CancellationToken;

/// A handler that sends its calls to a channel. Two handlers run concurrently; the example prints them in
/// turn.
struct Teller(UnboundedSender<String>);

impl EventHandler for Teller {
    fn on_add(&mut self, object: &Object, is_in_initial_list: bool) {
        let initial = if is_in_initial_list { " (was there)" } else { "" };
        let _ = self.0.send(format!("add {}{initial}", show(object)));
    }

    fn on_update(&mut self, old: &Object, new: &Object) {
        let _ = self.0.send(format!("update {}, was {}", show(new), show(old)));
    }

    fn on_delete(&mut self, object: &Object, _final_state_unknown: bool) {
        let _ = self.0.send(format!("delete {}", show(object)));
    }
}

#[tokio::main]
async fn main() -> Result {
    let scratch = Scratch::create("shared-informer").await?;
    scratch.put("first", "hello").await?;
    let informer = SharedInformer::new(Arc::new(scratch.list_watch()?), Config::new(config_maps()));

    let (early_sender, mut early_calls) = unbounded_channel();
    let deliver_early = informer.add_event_handler(named("early"), Teller(early_sender))?;
    let early = deliver_early.registration().clone();
    let token = CancellationToken::new();
    let story = async {
        // The informer has synced when its cache has the whole first list, a handler when it has processed
        // that list.
        if !wait_for_cache_sync(&token, &[&informer, &*early]).await {
            return Err("the informer stopped".into());
        }
        let listed = informer.lister().list(Some("default"), &LabelSelector::everything());
        println!("synced, and listed from the cache: {} object(s)", listed.len());

        scratch.put("second", "good morning").await?;
        let version = scratch.put("first", "hello again").await?;
        // The cache is behind the server, but a caller can wait until it has its own write.
        informer.wait_until_seen(&version).await?;
        print("early", &mut early_calls, 3).await;

        // A late handler first gets the cached objects, then the changes.
        let (late_sender, mut late_calls) = unbounded_channel();
        let deliver_late = informer.add_event_handler(named("late"), Teller(late_sender))?;
        let late = deliver_late.registration().clone();
        let both = async {
            print("late", &mut late_calls, 2).await;
            scratch.delete("first").await?;
            print("early", &mut early_calls, 1).await;
            print("late", &mut late_calls, 1).await;

            // A handler can be removed while the other continues. The call returns when no call of the
            // handler runs.
            early.shut_down().await;
            scratch.put("second", "good evening").await?;
            print("late", &mut late_calls, 1).await;
            println!(
                "early: {}",
                early_calls.recv().await.unwrap_or_else(|| "removed, and not called again".to_owned())
            );
            late.remove();
            println!("handlers left: {}", informer.status().listeners);
            Ok(())
        };
        tokio::join!(deliver_late, both).1
    };
    let story = async {
        let result = story.await;
        token.cancel();
        result
    };
    let result: Result = tokio::join!(informer.run(token.clone()), deliver_early, story).2;
    result?;
    scratch.clear().await
}

async fn print(handler: &str, calls: &mut UnboundedReceiver<String>, n_calls: usize) {
    for _ in 0..n_calls {
        println!("{handler}: {}", calls.recv().await.unwrap_or_default());
    }
}

fn named(name: &str) -> ListenerConfig {
    ListenerConfig { name: name.to_owned(), ..ListenerConfig::default() }
}

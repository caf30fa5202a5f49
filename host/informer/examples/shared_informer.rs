//! The same with a server: one watch and one cache, however many handlers, and one of them comes late.
//!
//! `cargo run -p oarlock-informer --example shared_informer`, against the cluster of your kubeconfig.

#![allow(clippy::print_stdout, reason = "an example talks to its reader")]

#[path = "support/corner.rs"]
mod corner;

use std::sync::Arc;

use corner::{Corner, Result, config_maps, show};
use oarlock_informer::shared_informer::Config;
use oarlock_informer::toolkit::wait::wait_for_cache_sync;
use oarlock_informer::{ListenerConfig, Object, SharedInformer, toolkit::cache::EventHandler};
use oarlock_label_selector::LabelSelector;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio_util::sync::CancellationToken;

/// A handler that sends on what it is told. Two of them are called at the same time; what they say is printed in turn.
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
    let corner = Corner::enter("shared-informer").await?;
    corner.put("first", "hello").await?;
    let informer = SharedInformer::new(Arc::new(corner.list_watch()?), Config::new(config_maps()));

    let (early_teller, mut early_told) = unbounded_channel();
    let deliver_early = informer.add_event_handler(named("early"), Teller(early_teller))?;
    let early = deliver_early.registration().clone();
    let token = CancellationToken::new();
    let story = async {
        // The informer has synced when its cache has held the whole first list, a handler when it has been told of it.
        if !wait_for_cache_sync(&token, &[&informer, &*early]).await {
            return Err("nobody stops the informer here".into());
        }
        let listed = informer.lister().list(Some("default"), &LabelSelector::everything());
        println!("synced, and listed from the cache: {} object(s)", listed.len());

        corner.put("second", "good morning").await?;
        let version = corner.put("first", "hello again").await?;
        // The cache is behind the server, but one can wait until it has seen one's own write.
        informer.wait_until_seen(&version).await?;
        print("early", &mut early_told, 3).await;

        // Whoever comes late is told first what there is, then what happens.
        let (late_teller, mut late_told) = unbounded_channel();
        let deliver_late = informer.add_event_handler(named("late"), Teller(late_teller))?;
        let late = deliver_late.registration().clone();
        let both = async {
            print("late", &mut late_told, 2).await;
            corner.delete("first").await?;
            print("early", &mut early_told, 1).await;
            print("late", &mut late_told, 1).await;

            // A handler can be removed while the other goes on. This returns when no call of it is under way.
            early.shut_down().await;
            corner.put("second", "good evening").await?;
            print("late", &mut late_told, 1).await;
            println!(
                "early: {}",
                early_told.recv().await.unwrap_or_else(|| "removed, and told nothing more".to_owned())
            );
            late.remove();
            println!("handlers left: {}", informer.status().listeners);
            Ok(())
        };
        tokio::join!(deliver_late, both).1
    };
    let story = async {
        let told = story.await;
        token.cancel();
        told
    };
    let told: Result = tokio::join!(informer.run(token.clone()), deliver_early, story).2;
    told?;
    corner.leave().await
}

async fn print(handler: &str, told: &mut UnboundedReceiver<String>, n_calls: usize) {
    for _ in 0..n_calls {
        println!("{handler}: {}", told.recv().await.unwrap_or_default());
    }
}

fn named(name: &str) -> ListenerConfig {
    ListenerConfig { name: name.to_owned(), ..ListenerConfig::default() }
}

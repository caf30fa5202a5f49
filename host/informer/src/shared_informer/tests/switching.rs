//! Switches of the source, from metadata to full objects and back, with listeners.

use std::collections::BTreeMap;

use oarlock_label_selector::LabelSelector;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use serde_json::json;

use super::*;
use crate::listener::Notification;
use crate::object::Object;
use crate::reflector::SourceGeneration;
use crate::testing::MetadataOnly;

fn metadata_of(fake: &FakeListWatch) -> Source {
    Source { list_watch: Some(Arc::new(MetadataOnly(fake.clone()))), type_meta: None }
}

fn full(fake: &FakeListWatch) -> Source {
    Source { list_watch: Some(Arc::new(fake.clone())), type_meta: None }
}

fn pod(key: &str) -> Draft {
    Draft::new(key).field("spec", json!({ "nodeName": "n" }))
}

fn is_full(object: &Object) -> bool {
    object.pointer(&"/spec".parse().unwrap()).is_some()
}

fn cached(informer: &SharedInformer) -> Vec<Object> {
    informer.indexer().list(None, &LabelSelector::everything())
}

fn of_metadata(fake: &FakeListWatch) -> SharedInformer {
    SharedInformer::new(Arc::new(MetadataOnly(fake.clone())), config())
}

/// Checks that the chains of a listener have no gaps.
#[derive(Default)]
struct Follower {
    seen: BTreeMap<ObjectKey, String>,
}

impl Follower {
    fn take(&mut self, listener: &mut Listener) {
        while let Some(Some(delivery)) = listener.next().now_or_never() {
            let key = delivery.key.clone();
            let before = self.seen.get(&key).cloned();
            match &delivery.notification {
                Notification::Added { object, .. } => {
                    assert_eq!(before, None, "an add of {key}, which exists");
                    self.seen.insert(key.clone(), object.resource_version().to_owned());
                }
                Notification::Updated { old, new } => {
                    assert_eq!(before.as_deref(), Some(&*old.resource_version()), "the chain of {key}");
                    self.seen.insert(key.clone(), new.resource_version().to_owned());
                }
                Notification::Deleted { .. } => {
                    assert!(before.is_some(), "a delete of {key}, which does not exist");
                    self.seen.remove(&key);
                }
            }
            listener.finish(&key, Outcome::Done);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn promise_2_a_switch_to_full_objects_delivers_only_changed_objects() {
    let fake = FakeListWatch::pods();
    fake.put(pod("ns/a"));
    fake.put(pod("ns/b"));
    let informer = of_metadata(&fake);
    let mut early = informer.add_listener(ListenerConfig::default()).unwrap();
    run(&informer, async {
        assert_eq!(receive(&mut early, 2).await.len(), 2);
        let small = informer.status().bytes;
        fake.until_watches(1).await;
        // The old watch misses these changes. The list of the new source has them.
        fake.put_unseen(pod("ns/b"));
        fake.put_unseen(pod("ns/c"));
        let number = informer.switch(full(&fake));
        assert!(informer.wait_for_source(number).await);
        assert!(cached(&informer).iter().all(is_full));
        assert_eq!(receive(&mut early, 2).await, ["update ns/b@3→4", "add ns/c@5"]);
        let mut late = informer.add_listener(ListenerConfig::default()).unwrap();
        for _ in 0..3 {
            let delivery = late.next().await.unwrap();
            assert!(is_full(delivery.notification.object()));
            late.finish(&delivery.key, Outcome::Done);
        }
        fake.until_watches(2).await;
        fake.put(pod("ns/a"));
        assert_eq!(receive(&mut early, 1).await, ["update ns/a@2→6"], "the switch is no update of ns/a");
        drop(late);

        let number = informer.switch(metadata_of(&fake));
        assert!(informer.wait_for_source(number).await);
        assert!(!cached(&informer).iter().any(is_full));
        assert_eq!(informer.status().bytes, small / 2 * 3, "the memory is freed");
        settle().await;
        assert!(early.next().now_or_never().is_none(), "no listener is notified of the switch");
        assert_eq!(fake.n_open_watches(), 1);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn promise_2_chains_hold_through_any_number_of_switches() {
    for seed in 0..20 {
        let mut random = SmallRng::seed_from_u64(seed);
        let fake = FakeListWatch::pods();
        let informer = of_metadata(&fake);
        let mut listener = informer.add_listener(ListenerConfig::default()).unwrap();
        let mut follower = Follower::default();
        run(&informer, async {
            let mut number = SourceGeneration::default();
            let mut is_wide = false;
            for _ in 0..300 {
                let key = format!("ns/{}", random.random_range(0..8));
                let is_there = fake.objects().iter().any(|object| object.key().to_string() == key);
                match random.random_range(0..10) {
                    0..4 => drop(fake.put(pod(&key))),
                    4 => drop(fake.put_unseen(pod(&key))),
                    5 if is_there => drop(fake.delete(&key)),
                    6 => {
                        is_wide = !is_wide;
                        number = informer.switch(if is_wide { full(&fake) } else { metadata_of(&fake) });
                    }
                    7 => fake.close_watches(),
                    8 => tokio::time::sleep(Duration::from_millis(random.random_range(0..3000))).await,
                    _ => tokio::task::yield_now().await,
                }
                follower.take(&mut listener);
            }
            number = informer.switch(if is_wide { full(&fake) } else { metadata_of(&fake) }).max(number);
            assert!(informer.wait_for_source(number).await);
            follower.take(&mut listener);
            let there: BTreeMap<_, _> = fake
                .objects()
                .iter()
                .map(|object| (object.key().clone(), object.resource_version().to_owned()))
                .collect();
            assert_eq!(follower.seen, there, "seed {seed}");
            assert!(cached(&informer).iter().all(|object| is_full(object) == is_wide));
        })
        .await;
    }
}

#[tokio::test(start_paused = true)]
async fn wait_for_source_returns_once_the_list_of_the_source_is_in_the_cache() {
    let fake = FakeListWatch::pods();
    fake.put(pod("ns/a"));
    let informer = of_metadata(&fake);
    run(&informer, async {
        assert!(informer.wait_for_source(SourceGeneration::default()).await);
        fake.hang_watch();
        let number = informer.switch(full(&fake));
        settle().await;
        assert!(informer.wait_for_source(number).now_or_never().is_none());
        // A second switch before the first list: the list of the last source counts for both.
        let last = informer.switch(full(&fake));
        assert!(informer.wait_for_source(number).await && informer.wait_for_source(last).await);
    })
    .await;
    assert!(!informer.wait_for_source(99.into()).await, "the informer has stopped");
}

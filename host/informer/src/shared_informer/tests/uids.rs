//! Objects that are deleted and created again under the same name, with watches that miss events.

use std::collections::BTreeMap;

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

use super::*;
use crate::list_watch::WatchEvent;
use crate::listener::Notification;
use crate::names::TypeMeta;
use crate::object::Object;

/// One handler, with the uid and version of each object that it knows.
struct Handler {
    name: String,
    listener: Listener,
    known: BTreeMap<ObjectKey, (String, String)>,
    /// One in this many notifications fails; 0 for none.
    fails: u32,
    /// Updates that change no declared field are skipped, so versions are not checked.
    declares_fields: bool,
    /// Objects of which a delete may come although their add was not handled: it was tried, or was part of
    /// the first list.
    tried: BTreeMap<ObjectKey, String>,
    log: Vec<String>,
}

fn facts(object: &Object) -> (String, String) {
    (object.uid().to_string(), object.resource_version().to_string())
}

impl Handler {
    fn new(informer: &SharedInformer, name: &str, config: ListenerConfig, fails: u32) -> Self {
        let declares_fields = !config.fields.is_empty();
        let listener = informer.add_listener(config).unwrap();
        let (known, tried) = (BTreeMap::new(), BTreeMap::new());
        Self { name: name.to_owned(), listener, known, fails, declares_fields, tried, log: Vec::new() }
    }

    /// Handles at most this many notifications.
    fn handle(&mut self, n_at_most: usize, random: &mut SmallRng) {
        for _ in 0..n_at_most {
            let Some(Some(delivery)) = self.listener.next().now_or_never() else { return };
            let key = delivery.key.clone();
            let uids = |notification: &Notification| {
                let old = notification.old().map(|old| old.uid().to_string()).unwrap_or_default();
                format!("{old} → {}", notification.new().map(|new| new.uid().to_string()).unwrap_or_default())
            };
            self.log.push(format!("{} ({})", outline(&delivery.notification), uids(&delivery.notification)));
            self.check(&key, &delivery.notification);
            if self.fails > 0 && random.random_range(0..self.fails) == 0 {
                if let Notification::Added { object, .. } = &delivery.notification {
                    self.tried.insert(key.clone(), object.uid().to_string());
                }
                self.listener.finish(&key, Outcome::Retry { after: Duration::from_millis(5) });
                continue;
            }
            self.tried.remove(&key);
            match delivery.notification.new() {
                Some(new) => drop(self.known.insert(key.clone(), facts(new))),
                None => drop(self.known.remove(&key)),
            }
            self.listener.finish(&key, Outcome::Done);
        }
    }

    fn check(&self, key: &ObjectKey, notification: &Notification) {
        let known = self.known.get(key);
        let story =
            || format!("{}: {key}: knew {known:?}, tried {:?}; {:#?}", self.name, self.tried, self.log);
        match notification {
            Notification::Added { .. } => assert!(known.is_none(), "an add: {}", story()),
            Notification::Updated { old, .. } => {
                let (uid, version) = facts(old);
                let is_next =
                    known.is_some_and(|known| known.0 == uid && (known.1 == version || self.declares_fields));
                assert!(is_next, "an update: {}", story());
            }
            Notification::Deleted { object, .. } => {
                let uid = object.uid().to_string();
                match (known, self.tried.get(key)) {
                    (Some((known, _)), _) => assert_eq!(*known, uid, "a delete: {}", story()),
                    (None, Some(tried)) => assert_eq!(*tried, uid, "a delete: {}", story()),
                    // An initial add and its delete merged.
                    (None, None) => {}
                }
            }
        }
    }
}

fn draft(random: &mut SmallRng, key: &str) -> Draft {
    let draft = Draft::new(key).field("spec", serde_json::json!({ "n": random.random_range(0..3) }));
    if random.random_bool(0.7) { draft.label("app", "web") } else { draft }
}

/// Tests relists, resyncs, recreations and closed watches, for handlers with and without resync, filters,
/// failures and merging backlogs.
#[tokio::test(start_paused = true)]
async fn promise_2_no_handler_receives_the_delete_of_an_object_that_it_does_not_know() {
    for seed in 0..60 {
        let mut random = SmallRng::seed_from_u64(seed);
        let fake = FakeListWatch::pods();
        if seed % 3 == 0 {
            fake.decline_watch_list();
        }
        let informer = SharedInformer::new(
            Arc::new(fake.clone()),
            Config { resync_period: Duration::from_secs(1), ..config() },
        );
        let mut handlers = Vec::new();
        for resync in [Duration::ZERO, Duration::from_secs(1)] {
            for (backlog_limit, fails) in [(usize::MAX, 0), (usize::MAX, 3), (2, 0), (2, 3), (0, 2)] {
                for (selector, fields) in [("", ""), ("app=web", ""), ("", "/spec/n")] {
                    let name = format!(
                        "seed {seed}, resync {resync:?}, limit {backlog_limit}, fails {fails}, {selector:?} {fields:?}"
                    );
                    let config = ListenerConfig {
                        resync: Some(resync),
                        backlog_limit,
                        label_selector: selector.parse().unwrap(),
                        fields: fields.parse().into_iter().filter(|_| !fields.is_empty()).collect(),
                        ..ListenerConfig::default()
                    };
                    handlers.push(Handler::new(&informer, &name, config, fails));
                }
            }
        }
        run(&informer, async {
            fake.until_watches(1).await;
            for _ in 0..400 {
                let key = format!("ns/{}", random.random_range(0..4));
                let there = fake.objects().into_iter().find(|object| object.key().to_string() == key);
                let is_unseen = random.random_bool(0.4);
                match (random.random_range(0..12), there) {
                    (0..3, _) if is_unseen => drop(fake.put_unseen(draft(&mut random, &key))),
                    (0..3, _) => drop(fake.put(draft(&mut random, &key))),
                    (3..6, Some(_)) if is_unseen => drop(fake.delete_unseen(&key)),
                    (3..6, Some(_)) => drop(fake.delete(&key)),
                    // Created again unseen. The draft has no uid, so the object gets another one.
                    (6, Some(_)) => {
                        fake.delete_unseen(&key);
                        fake.put_unseen(draft(&mut random, &key));
                    }
                    (7, _) => fake.close_watches(),
                    (8, _) => fake.reset_watches(),
                    (9, _) => tokio::time::sleep(Duration::from_millis(random.random_range(0..3000))).await,
                    // A proxy that lost the events before.
                    (10, Some(object)) => {
                        let version = object.resource_version().to_string();
                        let other = Draft::new(&key).at(
                            &TypeMeta::new("v1", "Pod"),
                            &format!("lost-{version}"),
                            &version,
                        );
                        fake.send(&WatchEvent::Deleted(other));
                    }
                    _ => settle().await,
                }
                for handler in &mut handlers {
                    let n_at_most = random.random_range(0..3);
                    handler.handle(n_at_most, &mut random);
                }
            }
            // The list repairs whatever was lost.
            tokio::time::sleep(Duration::from_secs(200)).await;
            fake.break_watches(errors::garbage);
            for _ in 0..20 {
                tokio::time::sleep(Duration::from_secs(10)).await;
                for handler in &mut handlers {
                    handler.fails = 0;
                    handler.handle(usize::MAX, &mut random);
                }
            }
            for handler in &handlers {
                // Updates that change no declared field are skipped, so only the objects are compared then.
                let known = handler.known.clone().into_iter();
                let shown = |(key, (uid, version)): (ObjectKey, (String, String))| {
                    (key, uid, if handler.declares_fields { String::new() } else { version })
                };
                let selects = handler.name.contains("app=web");
                let there = fake
                    .objects()
                    .into_iter()
                    .filter(|object| !selects || object.labels().contains_key("app"));
                let expected: Vec<_> =
                    there.map(|object| (object.key().clone(), facts(&object))).map(shown).collect();
                assert_eq!(known.map(shown).collect::<Vec<_>>(), expected, "{}", handler.name);
            }
        })
        .await;
    }
}

/// The queue has three deltas, where client-go has the last alone: the delete of the old object, the add of
/// the new one, and its delete.
#[tokio::test(start_paused = true)]
async fn an_object_of_which_only_the_delete_was_seen_is_added_and_deleted() {
    let fake = FakeListWatch::pods();
    fake.put(Draft::new("ns/a").uid("first"));
    let informer = informer(&fake);
    let mut listener = informer.add_listener(ListenerConfig::default()).unwrap();
    run(&informer, async {
        receive(&mut listener, 1).await;
        fake.until_watches(1).await;
        let second = Draft::new("ns/a").at(&TypeMeta::new("v1", "Pod"), "second", "9");
        fake.send(&WatchEvent::Deleted(second));
        let mut uids = Vec::new();
        for _ in 0..3 {
            let delivery = listener.next().await.unwrap();
            let outline = outline(&delivery.notification);
            uids.push(format!("{outline} {}", delivery.notification.object().uid()));
            listener.finish(&delivery.key, Outcome::Done);
        }
        assert_eq!(uids, ["delete ns/a@2 (unknown) first", "add ns/a@9 second", "delete ns/a@9 second"]);
        assert!(informer.indexer().is_empty());
    })
    .await;
}

/// The relist's update from one uid to the other waits in a full backlog when the delete comes.
#[tokio::test(start_paused = true)]
async fn a_recreation_merged_with_a_delete_is_the_delete_of_the_known_object() {
    for limit in [0, 1024] {
        let fake = FakeListWatch::pods();
        fake.put(Draft::new("ns/a").uid("first"));
        let informer = informer(&fake);
        let config = ListenerConfig { backlog_limit: limit, ..ListenerConfig::default() };
        let mut listener = informer.add_listener(config).unwrap();
        run(&informer, async {
            receive(&mut listener, 1).await;
            fake.until_watches(1).await;
            fake.delete_unseen("ns/a");
            fake.put_unseen(Draft::new("ns/a").uid("second"));
            fake.reset_watches();
            informer.wait_until_seen("4").await.unwrap();
            fake.until_watches(2).await;
            fake.delete("ns/a");
            informer.wait_until_seen("5").await.unwrap();
            let mut uids = Vec::new();
            while let Some(Some(delivery)) = listener.next().now_or_never() {
                let outline = outline(&delivery.notification);
                uids.push(format!("{outline} {}", delivery.notification.old().unwrap().uid()));
                listener.finish(&delivery.key, Outcome::Done);
            }
            match limit {
                0 => assert_eq!(uids, ["delete ns/a@2 (unknown) first"]),
                _ => assert_eq!(uids, ["update ns/a@2→4 first", "delete ns/a@5 second"]),
            }
        })
        .await;
    }
}

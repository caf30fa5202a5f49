//! Clauses for which client-go has no unit test.

use std::collections::BTreeMap;

use async_trait::async_trait;
use futures::StreamExt;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use tokio::time::Instant;

use super::*;
use crate::list_watch::{
    ApiError, ItemHook, ListOptions, ListPage, ListWatch, WatchEvent, WatchOptions, WatchStream,
};
use crate::listener::Notification;
use crate::names::TypeMeta;
use crate::object::Object;

fn block_on<F: Future>(future: F) -> F::Output {
    tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(future)
}

/// Takes notifications until that of `last` and all initial adds are taken, and checks that each object has a
/// chain without gaps; returns the resulting objects.
///
/// New work goes before initial adds, so `last` may come before some of them.
/// If notifications merge, an initial add and its delete become a delete of an object that the consumer does
/// not know.
fn fold(listener: &mut Listener, last: &ObjectKey, merges: bool) -> BTreeMap<ObjectKey, String> {
    let mut view = BTreeMap::new();
    while !view.contains_key(last) || !listener.has_synced() {
        let next = async { tokio::time::timeout(Duration::from_secs(60), listener.next()).await };
        let delivery = block_on(next).unwrap_or_else(|_| panic!("{last} did not come: {view:?}")).unwrap();
        let key = delivery.key.clone();
        let version = |object: &Object| object.resource_version().to_owned();
        let before = match &delivery.notification {
            Notification::Added { object, .. } => {
                assert!(view.insert(key.clone(), version(object)).is_none(), "{key} is added twice");
                None
            }
            Notification::Updated { old, new } => {
                view.insert(key.clone(), version(new)).map(|seen| (seen, version(old)))
            }
            Notification::Deleted { .. } => {
                assert!(view.remove(&key).is_some() || merges, "{key} is deleted but was never added");
                None
            }
        };
        if let Some((seen, old)) = before {
            assert_eq!(seen, old, "{key}");
        }
        listener.finish(&key, Outcome::Done);
    }
    view
}

/// Tests backlogs that merge, and backlogs that do not.
// Conformance: G.29
#[test]
fn handlers_registered_under_load_receive_all_objects_of_the_store_si_10() {
    for backlog_limit in [usize::MAX, 10] {
        let fake = FakeListWatch::pods();
        let informer = informer(&fake);
        let token = CancellationToken::new();
        let last = ObjectKey::new("ns", "last");
        std::thread::scope(|scope| {
            // Stops the informer, which the scope waits for, also after a failure.
            let _stop = token.clone().drop_guard();
            scope.spawn(|| block_on(informer.run(token.clone())));
            block_on(fake.until_watches(1));
            let load = scope.spawn(|| {
                let mut random = SmallRng::seed_from_u64(20);
                let mut there = std::collections::BTreeSet::new();
                for _ in 0..3000 {
                    let key = format!("ns/{}", random.random_range(0..50));
                    if there.contains(&key) && random.random_bool(0.3) {
                        there.remove(&key);
                        fake.delete(&key);
                    } else {
                        fake.put(&*key);
                        there.insert(key);
                    }
                }
            });
            let mut listeners = Vec::new();
            while !load.is_finished() {
                let config = ListenerConfig { backlog_limit, ..ListenerConfig::default() };
                listeners.push(informer.add_listener(config).unwrap());
                std::thread::yield_now();
                if listeners.len() == 100 {
                    break;
                }
            }
            load.join().unwrap();
            // For the last listener, all other objects are initial adds when `last` comes.
            fake.put("ns/last-of-load");
            block_on(informer.wait_until_seen(&fake.resource_version())).unwrap();
            let config = ListenerConfig { backlog_limit, ..ListenerConfig::default() };
            listeners.push(informer.add_listener(config).unwrap());
            fake.put("ns/last");
            block_on(informer.wait_until_seen(&fake.resource_version())).unwrap();
            let expected: BTreeMap<_, _> = fake
                .objects()
                .iter()
                .map(|object| (object.key().clone(), object.resource_version().to_owned()))
                .collect();
            for listener in &mut listeners {
                assert_eq!(fold(listener, &last, backlog_limit < usize::MAX), expected);
            }
        });
    }
}

// Conformance: G.30
#[tokio::test(start_paused = true)]
async fn a_removed_handler_receives_nothing_of_its_backlog_si_20() {
    let fake = FakeListWatch::pods();
    let informer = informer(&fake);
    let mut blocked = informer.add_listener(ListenerConfig::default()).unwrap();
    run(&informer, async {
        fake.until_watches(1).await;
        for i in 0..1000 {
            fake.put(&*format!("ns/{i}"));
        }
        informer.wait_until_seen("1001").await.unwrap();
        let in_flight = blocked.next().await.unwrap();
        assert_eq!(blocked.stats().pending, 999);
        informer.remove_listener(&blocked);
        blocked.finish(&in_flight.key, Outcome::Done);
        assert!(blocked.next().await.is_none(), "no notification after the removal");
    })
    .await;
}

/// A watch that sends `n_events` changes of a few objects as fast as they are read.
struct Flood {
    objects: Vec<Object>,
    n_events: usize,
}

#[async_trait]
impl ListWatch for Flood {
    async fn list(&self, _: ListOptions, _: ItemHook<'_>) -> Result<ListPage, ApiError> {
        Ok(ListPage { resource_version: "1".into(), ..ListPage::default() })
    }

    async fn watch(&self, _: WatchOptions) -> Result<WatchStream, ApiError> {
        let events: Vec<_> = self.objects.iter().cloned().map(WatchEvent::Modified).map(Ok).collect();
        let n_events = self.n_events;
        let events = (0..n_events).map(move |i| match &events[i % events.len()] {
            Ok::<_, ApiError>(event) => Ok(event.clone()),
            Err(_) => unreachable!("made of events"),
        });
        Ok(futures::stream::iter(events).chain(futures::stream::pending()).boxed())
    }
}

// Conformance: G.31
#[tokio::test(start_paused = true)]
async fn a_blocked_handler_delays_no_other_and_has_a_bounded_backlog_pl_02() {
    let type_meta = TypeMeta::new("v1", "Pod");
    let object =
        |i: usize| Draft::new(&format!("ns/{}", i % 100)).at(&type_meta, "uid", &format!("{}", i + 2));
    let objects: Vec<_> = (0..200).map(object).collect();
    let flood = Flood { objects, n_events: 1_000_000 };
    let informer = SharedInformer::new(Arc::new(flood), config());
    let mut blocked = informer.add_listener(ListenerConfig::default()).unwrap();
    run(&informer, async {
        let in_flight = blocked.next().await.unwrap();
        let all_events = || {
            let status = informer.status();
            if status.events == 1_000_000 && status.queued == 0 { Ok(()) } else { Err(Box::new(status)) }
        };
        yield_until("a million events are processed", 10 * LIMIT, all_events).await;
        let stats = blocked.stats();
        assert!(stats.pending <= 1024 + 2 * 100, "{stats:?}");
        blocked.finish(&in_flight.key, Outcome::Done);
        assert!(blocked.next().await.is_some());
    })
    .await;
}

// Conformance: G.32
#[tokio::test(start_paused = true)]
async fn only_initial_adds_count_for_sync_and_a_parked_one_is_finished_sy_03_sy_04() {
    let fake = FakeListWatch::pods();
    for key in ["ns/a", "ns/b", "ns/c"] {
        fake.put(key);
    }
    let informer = informer(&fake);
    let mut listener = informer.add_listener(ListenerConfig::default()).unwrap();
    run(&informer, async {
        fake.until_watches(1).await;
        let [a, b, c] =
            [listener.next().await, listener.next().await, listener.next().await].map(Option::unwrap);
        fake.put("ns/a");
        fake.delete("ns/b");
        informer.wait_until_seen("6").await.unwrap();
        listener.finish(&a.key, Outcome::Done);
        listener.finish(&b.key, Outcome::Done);
        assert!(!listener.has_synced());
        // The outcome after the last retry of a guest's trap.
        listener.finish(&c.key, Outcome::Park);
        assert!(listener.has_synced());
        assert_eq!(listener.stats().pending, 2, "the update and the delete still wait");
    })
    .await;
}

/// Returns at which seconds an object is delivered again to a listener that requests a resync every
/// `requested`.
async fn resyncs(period: Duration, requested: Duration, is_late: bool) -> Vec<u64> {
    let fake = FakeListWatch::pods();
    fake.put("ns/a");
    let config = Config { resync_period: period, ..config() };
    let informer = SharedInformer::new(Arc::new(fake.clone()), config);
    let add = || {
        let config = ListenerConfig { resync: Some(requested), ..ListenerConfig::default() };
        informer.add_listener(config).unwrap()
    };
    let early = (!is_late).then(add);
    let begun_at = Instant::now();
    run(&informer, async {
        informer.wait_for_sync().await;
        let mut listener = early.unwrap_or_else(add);
        receive(&mut listener, 1).await;
        let mut times = Vec::new();
        for _ in 0..3 {
            let hour = Duration::from_secs(3600);
            let Ok(Some(delivery)) = tokio::time::timeout(hour, listener.next()).await else { break };
            times.push(begun_at.elapsed().as_secs());
            listener.finish(&delivery.key, Outcome::Done);
        }
        times
    })
    .await
}

// Conformance: G.33
#[tokio::test(start_paused = true)]
async fn a_requested_resync_period_is_rounded_up_to_the_check_period_rs_02_rs_04_rs_09() {
    let [tenths, second, ten] = [Duration::from_millis(300), Duration::from_secs(1), Duration::from_secs(10)];
    assert_eq!(resyncs(ten, tenths, false).await, [1, 2, 3], "the shortest period is a second");
    assert_eq!(
        resyncs(ten, tenths, true).await,
        [10, 20, 30],
        "after the start, not more often than the informer checks"
    );
    assert_eq!(
        resyncs(second, Duration::from_millis(2500), false).await,
        [3, 6, 9],
        "rounded up to multiples of the check period"
    );
    assert_eq!(
        resyncs(Duration::ZERO, second, false).await,
        [] as [u64; 0],
        "an informer without a period never resyncs"
    );
    assert_eq!(resyncs(second, Duration::ZERO, false).await, [] as [u64; 0]);
}

// Conformance: G.57
#[tokio::test(start_paused = true)]
async fn without_objects_every_listener_syncs_with_the_informer_sy_05_si_05() {
    let informer = informer(&FakeListWatch::pods());
    let early = [(); 2].map(|()| informer.add_listener(ListenerConfig::default()).unwrap());
    run(&informer, async {
        assert!(informer.wait_for_sync().await);
        let late = informer.add_listener(ListenerConfig::default()).unwrap();
        assert!(early.iter().chain([&late]).all(|listener| listener.has_synced()));
    })
    .await;
}

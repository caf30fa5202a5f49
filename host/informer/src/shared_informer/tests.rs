//! The informer with a fake API server: the clauses SI-…, CT-… and PD-…, and client-go's cases 1 and 20.

mod another_text;
mod gaps;
mod large;
mod panicking;
mod seen;
mod switching;
mod transforming;
mod uids;
mod undecodable;
mod upstream;

use std::pin::{Pin, pin};
use std::task::{Context, Waker};

use futures::FutureExt;
use oarlock_wait_until::{LIMIT, yield_until};

use super::*;
use crate::delta_fifo;
use crate::indexer::NAMESPACE_INDEX;
use crate::listener::tests::outline;
use crate::listener::{ListenerConfig, Outcome};
use crate::names::ObjectKey;
use crate::namespaces::Namespaces;
use crate::repolled::tests::Wakeups;
use crate::testing::{Draft, FakeListWatch, errors};

/// A deadline of the paused clock.
const A_DAY: Duration = Duration::from_secs(86_400);

fn config() -> Config {
    Config::new(GroupVersionResource::new("", "v1", "pods"))
}

fn informer(fake: &FakeListWatch) -> SharedInformer {
    SharedInformer::new(Arc::new(fake.clone()), config())
}

/// Runs an informer concurrently with a test, and stops it at the end.
async fn run<T>(informer: &SharedInformer, test: impl Future<Output = T>) -> T {
    let token = CancellationToken::new();
    let run = informer.run(token.clone());
    let test = async {
        let result = test.await;
        token.cancel();
        result
    };
    tokio::join!(run, test).1
}

/// Waits for this many notifications and finishes each.
async fn receive(listener: &mut Listener, n_notifications: usize) -> Vec<String> {
    let mut received = Vec::new();
    for _ in 0..n_notifications {
        let next = tokio::time::timeout(A_DAY, listener.next()).await;
        let next = next.unwrap_or_else(|_| panic!("no notification after {received:?}"));
        let Some(delivery) = next else { break };
        received.push(outline(&delivery.notification));
        listener.finish(&delivery.key, Outcome::Done);
    }
    received
}

/// Lets the other futures run until none can make progress without the clock.
async fn settle() {
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
}

/// A running informer that the test polls by itself.
struct PolledByHand {
    fake: FakeListWatch,
    informer: SharedInformer,
    run: Pin<Box<dyn Future<Output = ()>>>,
    wakeups: Arc<Wakeups>,
}

impl PolledByHand {
    async fn synced() -> Self {
        let fake = FakeListWatch::pods();
        let informer = informer(&fake);
        let run = {
            let informer = informer.clone();
            Box::pin(async move { informer.run(CancellationToken::new()).await })
        };
        let mut it = Self { fake, informer, run, wakeups: Arc::default() };
        while !it.informer.has_synced() {
            it.poll();
            tokio::task::yield_now().await;
        }
        it.poll();
        it
    }

    fn poll(&mut self) {
        let waker = Waker::from(self.wakeups.clone());
        assert!(self.run.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    }
}

/// A task that wakes itself goes through the scheduler again, and wakes another worker.
#[tokio::test(start_paused = true)]
async fn a_change_is_handled_in_the_poll_that_receives_it() {
    let mut it = PolledByHand::synced().await;
    // The first change wakes the compaction, which has slept until then.
    it.fake.put("ns/1");
    it.poll();
    for n in 2..5 {
        let before = it.wakeups.count();
        it.fake.put(format!("ns/{n}").as_str());
        assert_eq!(it.wakeups.count(), before + 1);
        it.poll();
        assert_eq!((it.informer.indexer().len(), it.wakeups.count()), (n, before + 1));
    }
}

/// The reflector does not queue whatever its connection has while nothing is handled.
#[tokio::test(start_paused = true)]
async fn the_queue_stays_short_while_many_events_are_ready() {
    const N_EVENTS: usize = 10_000;
    let mut it = PolledByHand::synced().await;
    for n in 0..N_EVENTS {
        it.fake.put(format!("ns/{n}").as_str());
    }
    while it.informer.indexer().len() < N_EVENTS {
        it.poll();
        let n_queued = it.informer.core.fifo.len();
        assert!(n_queued <= 256, "{n_queued} are queued, {} are handled", it.informer.indexer().len());
        tokio::task::yield_now().await;
    }
}

/// The plan for the declared fields is made at the registration, not at the next change.
#[tokio::test(start_paused = true)]
async fn the_values_of_initial_adds_are_kept_without_any_change() {
    let fake = FakeListWatch::pods();
    for n in 0..100 {
        fake.put(format!("ns/{n}").as_str());
    }
    let informer = informer(&fake);
    run(&informer, async {
        assert!(informer.wait_for_sync().await);
        settle().await;
        let before = informer.indexer().memory().indices;
        let fields = vec!["/metadata/name".parse().unwrap()];
        let mut listener =
            informer.add_listener(ListenerConfig { fields, ..ListenerConfig::default() }).unwrap();
        settle().await;
        assert_eq!(receive(&mut listener, 100).await.len(), 100);
        let kept = informer.indexer().memory().indices - before;
        assert!(kept > 2_000, "{kept} bytes");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn the_cache_and_the_listener_receive_adds_updates_and_deletes_pd_01_pd_02() {
    let fake = FakeListWatch::pods();
    fake.put("ns/listed");
    let informer = informer(&fake);
    let mut listener = informer.add_listener(ListenerConfig::default()).unwrap();
    run(&informer, async {
        assert_eq!(receive(&mut listener, 1).await, ["add ns/listed@2 (initial)"]);
        assert!(listener.wait_for_sync().await && informer.wait_for_sync().await);
        fake.until_watches(1).await;
        fake.put("ns/new");
        assert_eq!(receive(&mut listener, 1).await, ["add ns/new@3"]);
        fake.put("ns/listed");
        assert_eq!(receive(&mut listener, 1).await, ["update ns/listed@2→4"]);
        fake.delete("ns/new");
        assert_eq!(receive(&mut listener, 1).await, ["delete ns/new@5"]);
        assert_eq!(informer.indexer().keys(), [ObjectKey::new("ns", "listed")]);
        assert_eq!(&*informer.indexer().resource_version(), "5");
        assert_eq!(informer.last_resource_version(), "5");
    })
    .await;
    assert_eq!(fake.n_open_watches(), 0);
}

#[tokio::test(start_paused = true)]
async fn the_cache_holds_each_state_before_a_listener_receives_it_pd_03() {
    let fake = FakeListWatch::pods();
    let informer = informer(&fake);
    let mut listener = informer.add_listener(ListenerConfig::default()).unwrap();
    run(&informer, async {
        fake.until_watches(1).await;
        for _ in 0..10 {
            fake.put("ns/a");
            let delivery = listener.next().await.unwrap();
            let cached = informer.lister().get(&delivery.key).unwrap();
            assert!(cached.is_same(delivery.notification.object()));
            listener.finish(&delivery.key, Outcome::Done);
        }
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_relist_delivers_missed_deletes_adds_and_updates() {
    let fake = FakeListWatch::pods();
    for name in ["ns/changed", "ns/gone", "ns/same"] {
        fake.put(name);
    }
    let informer = informer(&fake);
    let mut listener = informer
        .add_listener(ListenerConfig { resync: Some(Duration::ZERO), ..ListenerConfig::default() })
        .unwrap();
    run(&informer, async {
        receive(&mut listener, 3).await;
        fake.until_watches(1).await;
        fake.delete_unseen("ns/gone");
        fake.put_unseen("ns/changed");
        fake.put_unseen("ns/new");
        fake.expire_history();
        fake.close_watches();
        let mut received = receive(&mut listener, 4).await;
        received.sort();
        let expected = [
            "add ns/new@7",
            "delete ns/gone@3 (unknown)",
            "update ns/changed@2→6",
            // Without a resync period, listeners stay marked as resyncing (RS-08).
            "update ns/same@4→4",
        ];
        assert_eq!(received, expected);
        assert_eq!(informer.status().relists, 1);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_dropped_watch_resumes_from_its_last_version() {
    let fake = FakeListWatch::pods();
    let informer = informer(&fake);
    let mut listener = informer.add_listener(ListenerConfig::default()).unwrap();
    run(&informer, async {
        fake.until_watches(1).await;
        fake.put("ns/a");
        assert_eq!(receive(&mut listener, 1).await, ["add ns/a@2"]);
        fake.put_unseen("ns/a");
        fake.delete_unseen("ns/a");
        fake.close_watches();
        assert_eq!(receive(&mut listener, 2).await, ["update ns/a@2→3", "delete ns/a@4"]);
        assert_eq!(informer.status().relists, 0);
    })
    .await;
}

// Conformance: G.8
#[tokio::test(start_paused = true)]
async fn a_missed_recreation_is_one_update_pd_07() {
    let fake = FakeListWatch::pods();
    fake.put(Draft::new("ns/a").uid("first"));
    let informer = informer(&fake);
    let mut listener = informer.add_listener(ListenerConfig::default()).unwrap();
    run(&informer, async {
        receive(&mut listener, 1).await;
        fake.until_watches(1).await;
        fake.delete_unseen("ns/a");
        fake.put_unseen(Draft::new("ns/a").uid("second"));
        fake.expire_history();
        fake.close_watches();
        let delivery = listener.next().await.unwrap();
        assert_eq!(outline(&delivery.notification), "update ns/a@2→4");
        let uids =
            [delivery.notification.old(), delivery.notification.new()].map(|object| object.unwrap().uid());
        assert_eq!(uids, ["first", "second"]);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_late_listener_receives_all_objects_and_a_removed_one_no_more_si_10() {
    let fake = FakeListWatch::pods();
    let informer = informer(&fake);
    let mut early = informer.add_listener(ListenerConfig::default()).unwrap();
    run(&informer, async {
        fake.until_watches(1).await;
        fake.put("ns/a");
        fake.put("ns/b");
        receive(&mut early, 2).await;
        let mut late = informer.add_listener(ListenerConfig::default()).unwrap();
        fake.put("ns/a");
        assert_eq!(
            receive(&mut late, 3).await,
            ["add ns/a@2 (initial)", "add ns/b@3 (initial)", "update ns/a@2→4"]
        );
        assert!(late.has_synced());
        assert_eq!(informer.status().listeners, 2);
        drop(early);
        assert_eq!(informer.status().listeners, 1);
        fake.delete("ns/b");
        assert_eq!(receive(&mut late, 1).await, ["delete ns/b@5"]);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn an_empty_resource_syncs_si_05() {
    let fake = FakeListWatch::pods();
    let informer = informer(&fake);
    let listener = informer.add_listener(ListenerConfig::default()).unwrap();
    assert!(!informer.has_synced());
    run(&informer, async {
        assert!(informer.wait_for_sync().await);
        assert!(listener.wait_for_sync().await);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn an_informer_starts_once_and_stops_once_si_01_si_03() {
    let fake = FakeListWatch::pods();
    let informer = informer(&fake);
    let mut listener = informer.add_listener(ListenerConfig::default()).unwrap();
    assert_eq!(informer.lifecycle(), Lifecycle::Created);
    assert_eq!(informer.last_resource_version(), "");
    run(&informer, async {
        assert_eq!(informer.lifecycle(), Lifecycle::Started);
        assert!(informer.run(CancellationToken::new()).now_or_never().is_some(), "a second run returns");
        informer.wait_for_sync().await;
    })
    .await;
    assert_eq!(informer.lifecycle(), Lifecycle::Stopped);
    assert!(listener.next().await.is_none());
    let error = informer
        .add_listener(ListenerConfig { name: "late".into(), ..ListenerConfig::default() })
        .unwrap_err();
    insta::assert_snapshot!(error, @r#"listener "late" was not added to shared informer because it has stopped already"#);
    informer.run(CancellationToken::new()).await;
    assert_eq!(fake.n_listings(), 1);
}

#[tokio::test(start_paused = true)]
async fn an_informer_whose_future_is_dropped_has_stopped() {
    let fake = FakeListWatch::pods();
    fake.hang_watch();
    let informer = informer(&fake);
    let mut listener = informer.add_listener(ListenerConfig::default()).unwrap();
    {
        let mut run = pin!(informer.run(CancellationToken::new()));
        assert!(run.as_mut().now_or_never().is_none());
    }
    assert_eq!(informer.lifecycle(), Lifecycle::Stopped);
    assert!(listener.next().await.is_none());
    assert!(!informer.wait_for_sync().await);
    assert!(!listener.wait_for_sync().await);
    assert_eq!(informer.wait_until_seen("1").await, Err(WaitError::Stopped));
}

#[tokio::test(start_paused = true)]
async fn keys_that_are_queued_at_the_stop_are_not_processed_ct_03() {
    let fake = FakeListWatch::pods();
    let informer = informer(&fake);
    run(&informer, informer.wait_for_sync()).await;
    informer.core.fifo.add(fake.put("ns/a")).unwrap();
    assert_eq!((informer.indexer().len(), informer.status().queued), (0, 1));
}

#[tokio::test(start_paused = true)]
async fn a_resync_delivers_all_objects_to_listeners_that_requested_it_rs_06() {
    let fake = FakeListWatch::pods();
    fake.put("ns/a");
    let config = Config { resync_period: Duration::from_secs(10), ..config() };
    let informer = SharedInformer::new(Arc::new(fake.clone()), config);
    let resync =
        |seconds| ListenerConfig { resync: Some(Duration::from_secs(seconds)), ..ListenerConfig::default() };
    let mut often = informer.add_listener(resync(10)).unwrap();
    let mut never = informer.add_listener(resync(0)).unwrap();
    run(&informer, async {
        assert_eq!(
            receive(&mut often, 3).await,
            ["add ns/a@2 (initial)", "update ns/a@2→2", "update ns/a@2→2"]
        );
        assert_eq!(receive(&mut never, 1).await, ["add ns/a@2 (initial)"]);
        assert!(never.next().now_or_never().is_none());
        assert_eq!(fake.n_listings(), 1, "RS-10: a resync sends no request");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn the_shorter_resync_period_of_informer_and_reflector_counts() {
    let seconds = |seconds| Some(Duration::from_secs(seconds));
    for (own, of_reflector, expected) in [
        (0, seconds(10), 10),
        (10, None, 10),
        (20, seconds(10), 10),
        (10, seconds(20), 10),
        (10, seconds(0), 10),
    ] {
        let fake = FakeListWatch::pods();
        fake.put("ns/a");
        let mut config = Config { resync_period: Duration::from_secs(own), ..config() };
        config.reflector.resync_period = of_reflector;
        let informer = SharedInformer::new(Arc::new(fake.clone()), config);
        let mut listener = informer.add_listener(ListenerConfig::default()).unwrap();
        run(&informer, async {
            receive(&mut listener, 1).await;
            let begun = tokio::time::Instant::now();
            assert_eq!(receive(&mut listener, 1).await, ["update ns/a@2→2"]);
            assert!(begun.elapsed().as_secs() <= expected, "{:?}", begun.elapsed());
        })
        .await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_version_is_seen_once_the_cache_holds_it() {
    let fake = FakeListWatch::pods();
    let informer = informer(&fake);
    run(&informer, async {
        assert_eq!(informer.wait_until_seen("1").await, Ok(()), "the list has this version");
        fake.until_watches(1).await;
        let written = fake.put("ns/a");
        informer.wait_until_seen(&written.resource_version()).await.unwrap();
        assert!(informer.indexer().get(written.key()).unwrap().is_same(&written));

        let mut waiting = pin!(informer.wait_until_seen("3"));
        settle().await;
        assert!(waiting.as_mut().now_or_never().is_none());
        // A bookmark has the version of an event that this informer did not receive.
        fake.put_unseen("ns/b");
        fake.bookmark();
        assert_eq!(waiting.await, Ok(()));
        let error = informer.wait_until_seen("abc").await.unwrap_err();
        insta::assert_snapshot!(error, @r#"the resourceVersion "abc" is not a decimal integer and cannot be compared"#);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn the_status_shows_phase_failures_and_figures() {
    let fake = FakeListWatch::pods();
    fake.put("ns/a");
    fake.fail_watch(errors::not_found().into());
    fake.fail_list(errors::not_found().into());
    let informer = informer(&fake);
    let mut phase = informer.phase();
    assert_eq!(*phase.borrow(), Phase::Waiting);
    assert_eq!(informer.status().phase, Phase::Waiting);
    run(&informer, async {
        phase.wait_for(|phase| *phase == Phase::Absent).await.unwrap();
        assert!(informer.status().last_error.is_some());
        phase.wait_for(|phase| *phase == Phase::Watching).await.unwrap();
        informer.wait_for_sync().await;
        let status = informer.status();
        assert_eq!(
            (status.objects, status.has_synced, status.watches, &*status.resource_version),
            (1, true, 1, "2")
        );
        assert_eq!(status.bytes, fake.objects()[0].json_length());
        assert!(status.last_sign_of_life.is_some());
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn every_object_is_transformed_and_indexed() {
    let fake = FakeListWatch::pods();
    fake.put(Draft::new("ns/a").label("app", "web"));
    let transformer: Transformer = Arc::new(|object| {
        let text = object.json().replace("\"web\"", "\"WEB\"");
        crate::object::Object::parse(text.as_bytes(), None)
            .map_err(|error| delta_fifo::TransformError(error.into()))
    });
    let informer =
        SharedInformer::new(Arc::new(fake.clone()), Config { transformer: Some(transformer), ..config() });
    informer.add_index("app", IndexSource::Label("app".into())).unwrap();
    run(&informer, async {
        informer.wait_for_sync().await;
        fake.until_watches(1).await;
        let written = fake.put(Draft::new("other/b").label("app", "web"));
        informer.wait_until_seen(&written.resource_version()).await.unwrap();
        informer.add_index("late", IndexSource::OwnerUid).unwrap();
        let indexer = informer.indexer();
        assert_eq!(indexer.by_index("app", "WEB").unwrap().len(), 2);
        assert_eq!(indexer.index_values("app", &Namespaces::All), ["WEB"]);
        assert_eq!(indexer.index_values(NAMESPACE_INDEX, &Namespaces::All), ["ns", "other"]);
        assert!(informer.remove_index("app"));
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn the_error_of_a_lister_names_resource_and_object_ls_03() {
    let fake = FakeListWatch::pods();
    let informer = informer(&fake);
    let error = informer.lister().get(&ObjectKey::new("ns", "a")).unwrap_err();
    insta::assert_snapshot!(error, @r#"pods "a" not found"#);
    let resource = GroupVersionResource::new("apps", "v1", "deployments");
    let error =
        Lister::new(informer.indexer().clone(), resource).get(&ObjectKey::new("ns", "a")).unwrap_err();
    insta::assert_snapshot!(error, @r#"deployments.apps "a" not found"#);
}

#[tokio::test(start_paused = true)]
async fn a_relist_keeps_unchanged_objects() {
    let fake = FakeListWatch::pods();
    let written = fake.put("ns/a");
    let informer = informer(&fake);
    run(&informer, async {
        informer.wait_for_sync().await;
        let cached = informer.indexer().get(written.key()).unwrap();
        fake.until_watches(1).await;
        fake.put_unseen("ns/b");
        fake.expire_history();
        fake.close_watches();
        fake.until_listings(2).await;
        informer.wait_until_seen("3").await.unwrap();
        assert!(informer.indexer().get(written.key()).unwrap().is_same(&cached));
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_slow_listener_does_not_delay_others() {
    let fake = FakeListWatch::pods();
    let informer = informer(&fake);
    let slow =
        informer.add_listener(ListenerConfig { backlog_limit: 10, ..ListenerConfig::default() }).unwrap();
    let mut fast =
        informer.add_listener(ListenerConfig { backlog_limit: 10_000, ..ListenerConfig::default() }).unwrap();
    run(&informer, async {
        fake.until_watches(1).await;
        for round in 0..500 {
            fake.put(&*format!("ns/{}", round % 5));
        }
        assert_eq!(receive(&mut fast, 500).await.len(), 500);
        let stats = slow.stats();
        assert!(stats.pending <= 20 && stats.merged >= 480, "{stats:?}");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_full_queue_lets_other_futures_run() {
    let fake = FakeListWatch::pods();
    let informer = informer(&fake);
    let core = &informer.core;
    for i in 0..2000 {
        core.fifo.add(fake.put(&*format!("ns/{i}"))).unwrap();
    }
    let token = CancellationToken::new();
    let mut depths = Vec::new();
    let others = async {
        let is_empty = || match core.fifo.len() {
            0 => Ok(()),
            depth => {
                depths.push(depth);
                Err(depth)
            }
        };
        yield_until("the queue is empty", LIMIT, is_empty).await;
        token.cancel();
    };
    tokio::join!(core.pop_until(&token), others);
    assert!(depths.len() > 10, "{depths:?}");
}

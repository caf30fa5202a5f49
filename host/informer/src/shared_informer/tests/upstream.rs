//! client-go's own tests of its shared informer.

use parking_lot::Mutex;

use super::*;
use crate::reflector::WatchErrorHandler;

fn resync(seconds: u64) -> ListenerConfig {
    ListenerConfig { resync: Some(Duration::from_secs(seconds)), ..ListenerConfig::default() }
}

/// Takes and finishes all ready notifications.
async fn drain(listener: &mut Listener) -> Vec<String> {
    settle().await;
    let mut received = Vec::new();
    while let Some(Some(delivery)) = listener.next().now_or_never() {
        received.push(outline(&delivery.notification));
        listener.finish(&delivery.key, Outcome::Done);
    }
    received
}

/// Runs a future on a thread that has no runtime.
fn block_on<F: Future>(future: F) -> F::Output {
    tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(future)
}

// Conformance: 20.1
#[tokio::test(start_paused = true)]
async fn indexer() {
    let fake = FakeListWatch::pods();
    let pod = |name: &str, a: &str, b: &str| Draft::new(name).label("a", a).label("b", b);
    fake.put(pod("ns/pod1", "a-val", "b-val1"));
    let informer = informer(&fake);
    informer.add_index("labels", IndexSource::Label("a".into())).unwrap();
    run(&informer, async {
        fake.until_watches(1).await;
        fake.put(pod("ns/pod2", "a-val", "b-val2"));
        fake.put(pod("ns/pod3", "a-val2", "b-val1"));
        informer.wait_until_seen("4").await.unwrap();
        let cache = informer.indexer();
        let names = |index: &str, value: &str| -> Vec<String> {
            let keys = cache.index_keys(index, value).unwrap();
            keys.iter().map(|key| key.name().to_owned()).collect()
        };
        assert_eq!(cache.index_values("labels", &Namespaces::All), ["a-val", "a-val2"]);
        assert_eq!(names("labels", "a-val"), ["pod1", "pod2"]);
        informer.add_index("labels2", IndexSource::Label("b".into())).unwrap();
        assert_eq!(cache.index_values("labels2", &Namespaces::All), ["b-val1", "b-val2"]);
        assert_eq!(names("labels2", "b-val1"), ["pod1", "pod3"]);
    })
    .await;
}

// Conformance: 20.2
#[tokio::test(start_paused = true)]
async fn listener_resync_periods() {
    let fake = FakeListWatch::pods();
    fake.put("ns/pod1");
    fake.put("ns/pod2");
    let config = Config { resync_period: Duration::from_secs(1), ..config() };
    let informer = SharedInformer::new(Arc::new(fake.clone()), config);
    let mut listeners = [0, 2, 3].map(|seconds| informer.add_listener(resync(seconds)).unwrap());
    run(&informer, async {
        for listener in &mut listeners {
            receive(listener, 2).await;
        }
        let both = ["update ns/pod1@2→2", "update ns/pod2@3→3"];
        let [never, two, three] = &mut listeners;
        tokio::time::sleep(Duration::from_millis(1100)).await;
        assert_eq!((drain(never).await, drain(two).await, drain(three).await), (vec![], vec![], vec![]));
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!((drain(two).await, drain(three).await), (both.map(String::from).into(), vec![]));
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!((drain(two).await, drain(three).await), (vec![], both.map(String::from).into()));
        assert_eq!(drain(never).await, Vec::<String>::new());
    })
    .await;
}

// Conformance: 20.5
#[test]
fn shared_informer_initialization_race() {
    for _ in 0..20 {
        let fake = FakeListWatch::pods();
        fake.put("ns/a");
        let informer = informer(&fake);
        let token = CancellationToken::new();
        std::thread::scope(|scope| {
            let _stop = token.clone().drop_guard();
            scope.spawn(|| block_on(informer.run(token.clone())));
            let listeners: Vec<_> = (0..8)
                .map(|_| scope.spawn(|| informer.add_listener(ListenerConfig::default()).unwrap()))
                .collect();
            for listener in listeners {
                let mut listener = listener.join().unwrap();
                let added = block_on(listener.next()).unwrap();
                assert_eq!(outline(&added.notification), "add ns/a@2 (initial)");
                listener.finish(&added.key, Outcome::Done);
                assert!(block_on(listener.wait_for_sync()));
            }
        });
    }
}

// Conformance: 20.7
#[tokio::test(start_paused = true)]
async fn shared_informer_error_handling() {
    let fake = FakeListWatch::pods();
    fake.decline_watch_list();
    fake.fail_list(errors::status(418, "Teapot", "Access Denied").into());
    let informer = informer(&fake);
    let received = Arc::new(Mutex::new(Vec::new()));
    let recorded = received.clone();
    let handler = WatchErrorHandler::new(move |error| {
        recorded.lock().push(error.api_error().map(ToString::to_string));
    });
    informer.set_watch_error_handler(handler).unwrap();
    run(&informer, async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        let received = std::mem::take(&mut *received.lock());
        let [Some(message)] = &received[..] else { panic!("{received:?}") };
        assert!(message.contains("Access Denied"), "{message}");
        assert!(informer.wait_for_sync().await, "the informer retries");
    })
    .await;
}

// Conformance: 20.8
#[test]
fn shared_informer_start_race() {
    let fake = FakeListWatch::pods();
    let informer = informer(&fake);
    let token = CancellationToken::new();
    let hammer = || {
        let transformer: Transformer = Arc::new(Ok);
        while informer.set_transformer(transformer.clone()).is_ok() {}
        while informer.set_watch_error_handler(WatchErrorHandler::new(|_| {})).is_ok() {}
        token.cancel();
    };
    std::thread::scope(|scope| {
        scope.spawn(hammer);
        scope.spawn(hammer);
        block_on(informer.run(token.clone()));
    });
    let error = informer.set_transformer(Arc::new(Ok)).unwrap_err();
    insta::assert_snapshot!(error, @"informer has already started");
    assert_eq!(informer.set_watch_error_handler(WatchErrorHandler::new(|_| {})), Err(AlreadyStarted));
}

// Conformance: 20.9
#[tokio::test(start_paused = true)]
async fn shared_informer_transformer() {
    let fake = FakeListWatch::pods();
    fake.put("ns/pod1");
    fake.put("ns/pod2");
    let informer = informer(&fake);
    let transformer = |from: &'static str, to: &'static str| -> Transformer {
        Arc::new(move |object| {
            let text = object.json().replace(from, to);
            crate::object::Object::parse(text.as_bytes(), None)
                .map_err(|error| delta_fifo::TransformError(error.into()))
        })
    };
    informer.set_transformer(transformer("\"pod", "\"loser")).unwrap();
    informer.set_transformer(transformer("\"pod", "\"POD")).unwrap();
    let mut listener = informer.add_listener(ListenerConfig::default()).unwrap();
    run(&informer, async {
        assert_eq!(receive(&mut listener, 2).await, ["add ns/POD1@2 (initial)", "add ns/POD2@3 (initial)"]);
        assert_eq!(informer.indexer().keys(), ["POD1", "POD2"].map(|name| ObjectKey::new("ns", name)));
    })
    .await;
}

// Conformance: 20.10, 20.13
#[tokio::test(start_paused = true)]
async fn shared_informer_remove_handler() {
    let informer = informer(&FakeListWatch::pods());
    let [first, second] = [(); 2].map(|()| informer.add_listener(ListenerConfig::default()).unwrap());
    assert_eq!(informer.status().listeners, 2);
    assert!(informer.remove_listener(&second));
    assert_eq!(informer.status().listeners, 1);
    assert!(!informer.remove_listener(&second), "the second removal does nothing");
    second.remove();
    assert!(informer.remove_listener(&first));
    assert_eq!(informer.status().listeners, 0);
}

// Conformance: 20.11
#[tokio::test(start_paused = true)]
async fn shared_informer_remove_foreign_handler() {
    let fake = FakeListWatch::pods();
    fake.put("ns/a");
    let (informer, other) = (informer(&fake), informer(&fake));
    let mut listener = informer.add_listener(ListenerConfig::default()).unwrap();
    let _others = other.add_listener(ListenerConfig::default()).unwrap();
    assert!(!other.remove_listener(&listener));
    assert_eq!((informer.status().listeners, other.status().listeners), (1, 1));
    run(&informer, async {
        assert_eq!(receive(&mut listener, 1).await, ["add ns/a@2 (initial)"], "unaffected");
        assert!(informer.remove_listener(&listener));
        assert!(listener.next().await.is_none());
    })
    .await;
}

// Conformance: 20.15
#[tokio::test(start_paused = true)]
async fn state_shared_informer() {
    let informer = informer(&FakeListWatch::pods());
    let is_started = || informer.lifecycle() >= Lifecycle::Started;
    let is_stopped = || informer.lifecycle() == Lifecycle::Stopped;
    assert!(!is_started() && !is_stopped());
    run(&informer, async { assert!(is_started() && !is_stopped()) }).await;
    assert!(is_started() && is_stopped());
}

// Conformance: 20.16, 20.17
#[tokio::test(start_paused = true)]
async fn add_and_remove_on_stopped_shared_informer() {
    let informer = informer(&FakeListWatch::pods());
    let listener = informer.add_listener(ListenerConfig::default()).unwrap();
    run(&informer, async {}).await;
    let error = informer.add_listener(ListenerConfig::default()).unwrap_err();
    assert!(error.to_string().ends_with("was not added to shared informer because it has stopped already"));
    assert!(!informer.remove_listener(&listener), "the stop removed the listener");
    let error = informer.add_index("late", IndexSource::OwnerUid).unwrap_err();
    insta::assert_snapshot!(error, @r#"index "late" was not added because the informer has stopped already"#);
}

// Conformance: 20.18
#[tokio::test(start_paused = true)]
async fn remove_while_active() {
    let fake = FakeListWatch::pods();
    let informer = informer(&fake);
    let mut listener = informer.add_listener(ListenerConfig::default()).unwrap();
    run(&informer, async {
        fake.until_watches(1).await;
        fake.put("ns/pod1");
        assert_eq!(receive(&mut listener, 1).await, ["add ns/pod1@2"]);
        assert!(informer.remove_listener(&listener));
        fake.put("ns/pod2");
        settle().await;
        assert!(listener.next().await.is_none());
    })
    .await;
}

/// An informer has no tasks to leak. A listener could wait for ever, or keep the informer in memory.
// Conformance: 20.20
#[tokio::test(start_paused = true)]
async fn shutdown_leaves_nothing_behind() {
    let fake = FakeListWatch::pods();
    fake.put("ns/a");
    for (is_before, is_run) in [(true, true), (false, true), (true, false)] {
        let informer = informer(&fake);
        let core = Arc::downgrade(&informer.core);
        let add = || informer.add_listener(ListenerConfig::default()).unwrap();
        let mut listener = is_before.then(add);
        if is_run {
            run(&informer, async {
                let mut listener = listener.take().unwrap_or_else(add);
                receive(&mut listener, 1).await;
                // This wait ends only because the informer stops.
                tokio::join!(async { assert!(listener.next().await.is_none()) }, async {
                    informer.core.processor.stop();
                });
            })
            .await;
        }
        drop(listener);
        assert_eq!((informer.status().listeners, fake.n_open_watches()), (0, 0));
        drop(informer);
        assert!(core.upgrade().is_none());
    }
}

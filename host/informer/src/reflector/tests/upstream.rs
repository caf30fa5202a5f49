//! Cases of client-go's reflector tests that the tests of the clauses do not cover.

use std::num::NonZeroU32;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::FutureExt;
use oarlock_flow_control::Backoff;
use parking_lot::Mutex;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::support::{RecordingStore, in_time, listed, play};
use crate::list_watch::{
    ApiError, ItemHook, ListOptions, ListPage, ListWatch, Status, WatchEvent, WatchOptions, WatchStream,
};
use crate::names::TypeMeta;
use crate::reflector::{Config, Error, InitialList, Reflector, WatchErrorHandler};
use crate::testing::{Draft, FakeListWatch, ScriptedWatch, Serving, errors};

const BOTH: [InitialList; 2] = [InitialList::Streamed, InitialList::Listed];

fn pod(key: &str, version: &str) -> crate::Object {
    Draft::new(key).at(&TypeMeta::new("v1", "Pod"), key, version)
}

/// Returns a list of this many Pods at version 10.
fn list_of(n_pods: usize) -> ListPage {
    ListPage {
        resource_version: "10".into(),
        continue_token: None,
        items: (0..n_pods).map(|idx| pod(&format!("x/{idx}"), "7")).collect(),
        undecodable: vec![],
    }
}

// Conformance: 17.1
#[tokio::test(start_paused = true)]
async fn close_watch_channel_on_error_rl_44() {
    let server = FakeListWatch::pods();
    let (watch, stream) = ScriptedWatch::new(10);
    server.answer_watch(stream);
    play(server, listed(), async |scene| {
        scene.settle().await;
        assert!(!watch.is_stopped());
        // The status that an error event with a Pod decodes to.
        watch.send(Ok(WatchEvent::Error(Status::default()))).await;
        scene.settle().await;
        assert!(watch.is_stopped());
    })
    .await;
}

// Conformance: 17.2, 17.5, 17.8, 17.12
#[tokio::test(start_paused = true)]
async fn cancelling_during_a_watch_closes_it_rl_45() {
    for initial_list in BOTH {
        let server = FakeListWatch::pods();
        // `play` checks that the reflector ends when it is cancelled, and that no watch stays open.
        play(server.clone(), Config { initial_list, ..Config::default() }, async |scene| {
            scene.server.until_watches(1).await;
            scene.pass(10).await;
            assert_eq!(scene.server.n_open_watches(), 1);
        })
        .await;
        assert_eq!(server.watches().len(), 1, "exactly one watch");
    }
}

// Conformance: 17.4
#[tokio::test(start_paused = true)]
async fn a_reflector_that_is_cancelled_before_its_start_makes_no_request_rl_45() {
    for initial_list in BOTH {
        let server = FakeListWatch::pods();
        let config = Config { initial_list, ..Config::default() };
        let reflector = Reflector::new(Arc::new(server.clone()), Arc::new(RecordingStore::default()), config);
        let token = CancellationToken::new();
        token.cancel();
        in_time(reflector.run(&token)).await;
        assert_eq!(server.requests(), []);
    }
}

// Conformance: 17.7
#[tokio::test(start_paused = true)]
async fn a_cancelled_reflector_closes_the_watch_without_reading_it_rl_45() {
    let server = FakeListWatch::pods();
    let (watch, stream) = ScriptedWatch::new(10);
    server.answer_watch(stream);
    let store = Arc::new(RecordingStore::default());
    let reflector = Reflector::new(Arc::new(server.clone()), store.clone(), listed());
    let token = CancellationToken::new();
    let script = async {
        server.until_watches(1).await;
        token.cancel();
        watch.send(Ok(WatchEvent::Added(pod("x/a", "2")))).await;
    };
    in_time(async { tokio::join!(biased; script, reflector.run(&token)) }).await;
    assert!(watch.is_stopped());
    assert_eq!(store.objects(), "", "the store does not get the event");
}

// Conformance: 17.9
#[tokio::test(start_paused = true)]
async fn a_watch_that_is_closed_from_the_start_is_very_short_rl_42() {
    let server = FakeListWatch::pods();
    let (watch, stream) = ScriptedWatch::new(10);
    server.answer_watch(stream);
    drop(watch);
    play(server, listed(), async |scene| {
        scene.settle().await;
        assert!(scene.last_error().starts_with("very short watch"), "{}", scene.last_error());
        assert_eq!(scene.requests(), ["list 500 at \"0\"", "watch \"1\""]);
    })
    .await;
}

// Conformance: 17.3
#[tokio::test(start_paused = true)]
async fn reflector_resync_chan_rl_60() {
    let config = Config { resync_period: Some(Duration::from_millis(1)), ..Config::default() };
    play(FakeListWatch::pods(), config, async |scene| {
        scene.pass(3).await;
        assert_eq!(scene.store_calls()[..2], ["replace [] at 1", "resync"]);
    })
    .await;
}

// Conformance: 17.14
#[tokio::test(start_paused = true)]
async fn reflector_list_and_watch_with_errors_rl_25_rl_27_rl_41() {
    /// One round: the answer to the list, the events of the watch, and the result.
    struct Row {
        list: Result<&'static [(&'static str, &'static str)], ApiError>,
        events: Result<Vec<WatchEvent>, ApiError>,
        objects: &'static str,
        error: Option<&'static str>,
    }
    let added = |key, version| WatchEvent::Added(pod(key, version));
    let rows = [
        Row {
            list: Ok(&[("x/foo", "1")]),
            events: Ok(vec![added("x/bar", "2")]),
            objects: "x/bar@2 x/foo@1",
            error: None,
        },
        Row {
            list: Ok(&[("x/foo", "3"), ("x/baz", "4")]),
            events: Ok(vec![added("x/bar", "5"), WatchEvent::Modified(pod("x/foo", "6"))]),
            objects: "x/bar@5 x/baz@4 x/foo@6",
            error: None,
        },
        Row {
            list: Err(errors::internal().into()),
            events: Ok(vec![]),
            objects: "x/bar@5 x/baz@4 x/foo@6",
            error: Some("failed to list <unspecified>: Internal error occurred: etcd is gone"),
        },
        Row {
            list: Ok(&[("x/foo", "8")]),
            events: Err(errors::forbidden().into()),
            objects: "x/foo@8",
            error: Some("failed to watch <unspecified>: pods is forbidden"),
        },
        Row {
            list: Ok(&[("x/bar", "9")]),
            events: Ok(vec![WatchEvent::Deleted(pod("x/bar", "10"))]),
            objects: "",
            error: None,
        },
        Row { list: Ok(&[]), events: Ok(vec![added("x/a", "11")]), objects: "x/a@11", error: None },
    ];
    let store = Arc::new(RecordingStore::default());
    for Row { list, events, objects, error } in rows {
        let server = FakeListWatch::pods();
        match list {
            Ok(pods) => server.answer_list(ListPage {
                resource_version: "1".into(),
                continue_token: None,
                items: pods.iter().map(|(key, version)| pod(key, version)).collect(),
                undecodable: vec![],
            }),
            Err(error) => server.fail_list(error),
        }
        let (watch, stream) = ScriptedWatch::new(10);
        match events {
            Ok(events) => {
                server.answer_watch(stream);
                for event in events {
                    watch.send(Ok(event)).await;
                }
            }
            Err(error) => server.fail_watch(error),
        }
        let received = Arc::new(Mutex::new(None));
        let handler = {
            let received = received.clone();
            WatchErrorHandler::new(move |error: &Error| {
                // The cause is available.
                assert!(error.api_error().and_then(ApiError::status).is_some());
                *received.lock() = Some(crate::reflector::outcome::in_full(error));
            })
        };
        let config = Config { watch_error_handler: Some(handler), ..listed() };
        let reflector = Reflector::new(Arc::new(server.clone()), store.clone(), config);
        let token = CancellationToken::new();
        let script = async {
            tokio::time::sleep(Duration::from_millis(1)).await;
            token.cancel();
        };
        in_time(async { tokio::join!(reflector.run(&token), script) }).await;
        assert_eq!(store.objects(), objects);
        let received = received.lock().take();
        match error {
            Some(error) => {
                assert!(received.as_ref().is_some_and(|text| text.starts_with(error)), "{received:?}")
            }
            None => assert_eq!(received, None),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn the_watch_error_handler_receives_only_errors_of_lists_and_watch_starts_rl_10() {
    let n_errors = Arc::new(Mutex::new(0));
    let handler = {
        let n_errors = n_errors.clone();
        WatchErrorHandler::new(move |_: &Error| *n_errors.lock() += 1)
    };
    let config = Config { watch_error_handler: Some(handler), ..listed() };
    play(FakeListWatch::pods(), config, async |scene| {
        // A very short watch, an expired version, an error on the watch: no error for the handler.
        scene.settle().await;
        scene.server.close_watches();
        scene.pass(2000).await;
        for error in [errors::expired(), errors::internal()] {
            scene.server.send(&WatchEvent::Error(error));
            scene.pass(10_000).await;
        }
        assert_eq!((scene.server.lists().len(), *n_errors.lock()), (4, 0));
        // A list that the store rejects, a failed list, and a watch that cannot begin.
        scene.store.reject("replace");
        scene.server.break_watches(errors::garbage);
        scene.pass(20_000).await;
        assert_eq!(*n_errors.lock(), 1);
        scene.server.fail_list(errors::internal().into());
        scene.server.fail_watch(errors::internal().into());
        scene.server.break_watches(errors::garbage);
        scene.pass(200_000).await;
        assert_eq!(*n_errors.lock(), 3);
    })
    .await;
}

// Conformance: 17.16
#[tokio::test(start_paused = true)]
async fn new_reflector_with_custom_backoff_rl_02() {
    let custom = Backoff {
        initial: Duration::from_millis(10),
        cap: Duration::from_millis(100),
        jitter: 0.0,
        ..Backoff::default()
    };
    for initial_list in BOTH {
        for (backoff, n_refusals, range) in
            [(Backoff::default(), 2, 0..10_000), (custom.clone(), 5, 250..300)]
        {
            let server = FakeListWatch::pods();
            for _ in 0..n_refusals {
                server.fail_watch(errors::connection_refused());
            }
            play(server, Config { backoff, initial_list, ..Config::default() }, async |scene| {
                scene.server.until_watches(n_refusals + 1).await;
                let took = scene.begun_at.elapsed().as_millis();
                assert!(range.contains(&took), "{took} ms");
            })
            .await;
        }
    }
}

// Conformance: 17.17
#[tokio::test(start_paused = true)]
async fn backoff_on_too_many_requests_rl_41_rl_44() {
    let server = FakeListWatch::pods();
    server.fail_watch(errors::too_many_requests(None).into());
    let (throttled, stream) = ScriptedWatch::new(10);
    throttled.send(Ok(WatchEvent::Error(errors::too_many_requests(None)))).await;
    server.answer_watch(stream);
    let (closed, stream) = ScriptedWatch::new(10);
    drop(closed);
    server.answer_watch(stream);
    let backoff = Backoff { jitter: 0.0, ..Backoff::default() };
    play(server, Config { backoff, ..listed() }, async |scene| {
        scene.server.until_watches(3).await;
        scene.settle().await;
        assert_eq!(
            scene.requested_at(),
            [0, 0, 800, 2400],
            "both waits are steps of the same back-off (RL-04)"
        );
        assert!(throttled.is_stopped());
        assert!(scene.last_error().starts_with("very short watch"));
        // The very short watch ends the round; the third step of the back-off precedes the next list.
        scene.server.until_lists(2).await;
        assert_eq!(scene.requested_at()[4], 5600);
    })
    .await;
}

// Conformance: 17.21
#[tokio::test(start_paused = true)]
async fn reflector_watch_list_page_size_rl_22_pg_02() {
    let server = FakeListWatch::pods();
    server.serve_from(Serving::Storage);
    for idx in 0..9 {
        server.put(&*format!("x/{idx}"));
    }
    let config = Config { page_size: NonZeroU32::new(4), ..listed() };
    play(server, config, async |scene| {
        scene.settle().await;
        assert_eq!(scene.status().resource_version, "10");
        scene.server.put_unseen("x/9");
        scene.server.break_watches(errors::garbage);
        scene.pass(2000).await;
        assert_eq!(
            scene.requests()[4..7],
            ["list 4 at \"10\"", "list next 4 at \"\"", "list next 4 at \"\""]
        );
        assert_eq!(scene.store.replaced().len(), 10);
    })
    .await;
}

// Conformance: 17.24
#[tokio::test(start_paused = true)]
async fn reflector_resync_with_resource_version_rl_20() {
    let server = FakeListWatch::pods();
    server.answer_list(list_of(4));
    server.answer_list(list_of(8));
    play(server, listed(), async |scene| {
        scene.settle().await;
        assert_eq!(scene.store.replaced().len(), 4);
        scene.server.break_watches(errors::garbage);
        scene.pass(2000).await;
        let versions: Vec<_> =
            scene.server.lists().into_iter().map(|options| options.resource_version).collect();
        assert_eq!(versions, ["0", "10"]);
        assert_eq!(scene.store.replaced().len(), 8);
    })
    .await;
}

// Conformance: 17.25
#[tokio::test(start_paused = true)]
async fn reflector_expired_exact_resource_version_rl_23() {
    let server = FakeListWatch::pods();
    server.answer_list(list_of(4));
    server.fail_list(errors::expired().into());
    server.answer_list(list_of(8));
    play(server, listed(), async |scene| {
        scene.settle().await;
        scene.server.break_watches(errors::garbage);
        scene.pass(2000).await;
        let versions: Vec<_> =
            scene.server.lists().into_iter().map(|options| options.resource_version).collect();
        assert_eq!(versions, ["0", "10", ""]);
        assert_eq!(scene.requested_at()[2], scene.requested_at()[3], "in the same round");
        assert_eq!(scene.store.replaced().len(), 8);
    })
    .await;
}

// Conformance: 17.28, 17.29
#[tokio::test(start_paused = true)]
async fn messages_name_the_resource_and_the_expected_type_filters_events_rl_05_rl_06() {
    let deployment = TypeMeta::new("apps/v1", "Deployment");
    let cases = [
        (None, None, "<unspecified>".to_owned()),
        (Some("Pods of node n"), None, "Pods of node n".to_owned()),
        (None, Some(deployment.clone()), deployment.to_string()),
        (Some("Deployments"), Some(deployment.clone()), "Deployments".to_owned()),
    ];
    for (description, type_meta, name) in cases {
        let server = FakeListWatch::new(deployment.clone());
        server.fail_list(errors::forbidden().into());
        let config =
            Config { description: description.map(str::to_owned), type_meta: type_meta.clone(), ..listed() };
        play(server, config, async |scene| {
            scene.settle().await;
            let expected = format!("failed to list {name}: ");
            assert!(scene.last_error().starts_with(&expected), "{}", scene.last_error());
            scene.pass(2000).await;
            scene.store_calls();
            // Without an expected type every object is accepted.
            scene.server.send(&WatchEvent::Added(pod("x/p", "7")));
            scene.settle().await;
            assert_eq!(scene.store_calls().is_empty(), type_meta.is_some());
        })
        .await;
    }
}

// Conformance: 17.40
#[tokio::test(start_paused = true)]
async fn is_unsupported_table_object_rl_26() {
    for (api_version, kind, is_accepted) in [
        ("meta.k8s.io/v1beta1", "Table", false),
        ("meta.k8s.io/v1", "Table", false),
        ("v1", "Pod", true),
        ("example.com/v1", "Table", true),
    ] {
        play(FakeListWatch::pods(), listed(), async |scene| {
            scene.settle().await;
            let object = Draft::new("x/t").at(&TypeMeta::new(api_version, kind), "u", "7");
            scene.server.send(&WatchEvent::Added(object));
            scene.settle().await;
            assert_eq!(scene.store.objects() == "x/t@7", is_accepted, "{api_version} {kind}");
        })
        .await;
    }
}

// Conformance: G.13
#[tokio::test(start_paused = true)]
async fn only_rejected_events_make_a_very_short_watch_rl_42_rl_55() {
    let server = FakeListWatch::pods();
    let (watch, stream) = ScriptedWatch::new(10);
    server.answer_watch(stream);
    let config = Config { type_meta: Some(TypeMeta::new("v1", "Pod")), ..listed() };
    play(server, config, async |scene| {
        let stranger = Draft::new("x/s").at(&TypeMeta::new("v1", "Secret"), "u", "99");
        watch.send(Ok(WatchEvent::Added(stranger))).await;
        watch.send(Ok(WatchEvent::Unknown { event_type: "UNHEARD".into(), resource_version: None })).await;
        drop(watch);
        scene.settle().await;
        assert!(scene.last_error().starts_with("very short watch"));
        scene.pass(2000).await;
        assert_eq!(scene.requests()[2..], ["list all at \"1\"", "watch \"1\""]);
    })
    .await;
}

// Conformance: G.18
#[tokio::test(start_paused = true)]
async fn a_panic_in_a_list_propagates_and_a_hanging_list_can_be_cancelled_rl_21() {
    struct Panics;

    #[async_trait]
    impl ListWatch for Panics {
        async fn list(&self, _: ListOptions, _: ItemHook<'_>) -> Result<ListPage, ApiError> {
            panic!("the list panics")
        }

        async fn watch(&self, _: WatchOptions) -> Result<WatchStream, ApiError> {
            std::future::pending().await
        }
    }

    let reflector = Reflector::new(Arc::new(Panics), Arc::new(RecordingStore::default()), listed());
    let token = CancellationToken::new();
    let panic = in_time(AssertUnwindSafe(reflector.run(&token)).catch_unwind()).await.unwrap_err();
    assert_eq!(panic.downcast_ref::<&str>(), Some(&"the list panics"));

    let server = FakeListWatch::pods();
    server.hang_list();
    let begun_at = Instant::now();
    // `play` checks that the reflector ends when it is cancelled.
    play(server, listed(), async |scene| scene.server.until_lists(1).await).await;
    assert_eq!(begun_at.elapsed(), Duration::ZERO);
}

// Conformance: G.19
#[tokio::test(start_paused = true)]
async fn a_list_is_not_filtered_by_type_and_a_watch_is_rl_05() {
    let server = FakeListWatch::pods();
    let secret = |key: &str, version: &str| Draft::new(key).at(&TypeMeta::new("v1", "Secret"), "u", version);
    server.answer_list(ListPage {
        resource_version: "10".into(),
        continue_token: None,
        items: vec![secret("x/listed", "7")],
        undecodable: vec![],
    });
    let config = Config { type_meta: Some(TypeMeta::new("v1", "Pod")), ..listed() };
    play(server, config, async |scene| {
        scene.settle().await;
        scene.server.send(&WatchEvent::Added(secret("x/watched", "11")));
        scene.settle().await;
        assert_eq!(scene.store.objects(), "x/listed@7");
    })
    .await;
}

// Conformance: G.22
#[tokio::test(start_paused = true)]
async fn listeners_see_no_object_before_the_end_of_the_initial_events_wl_09() {
    let server = FakeListWatch::pods();
    server.put("x/a");
    server.put("x/b");
    server.hold_initial_events_end();
    let resource = crate::GroupVersionResource::new("", "v1", "pods");
    let informer =
        crate::SharedInformer::new(Arc::new(server.clone()), crate::shared_informer::Config::new(resource));
    let mut listener = informer.add_listener(crate::ListenerConfig::default()).unwrap();
    let token = CancellationToken::new();
    let script = async {
        server.until_watches(1).await;
        tokio::time::sleep(Duration::from_secs(60)).await;
        assert!(listener.next().now_or_never().is_none());
        assert!(!informer.has_synced());
        assert!(informer.indexer().is_empty() && informer.status().queued == 0);
        server.end_initial_events();
        for key in ["x/a", "x/b"] {
            let delivery = listener.next().await.unwrap();
            let outline = crate::listener::tests::outline(&delivery.notification);
            assert!(
                outline.starts_with(&format!("add {key}@")) && outline.ends_with("(initial)"),
                "{outline}"
            );
            listener.finish(&delivery.key, crate::listener::Outcome::Done);
        }
        assert!(informer.has_synced());
        token.cancel();
    };
    in_time(async { tokio::join!(informer.run(token.clone()), script) }).await;
}

// Conformance: G.25
#[tokio::test(start_paused = true)]
async fn relists_within_the_period_starve_the_resync_rl_60() {
    for initial_list in BOTH {
        let resync_period = Some(Duration::from_secs(300));
        let config = Config { resync_period, initial_list, ..Config::default() };
        play(FakeListWatch::pods(), config, async |scene| {
            for _ in 0..20 {
                scene.pass(200_000).await;
                scene.server.send(&WatchEvent::Error(errors::expired()));
            }
            let calls = scene.store_calls();
            assert!(calls.len() >= 20 && calls.iter().all(|call| call == "replace [] at 1"), "{calls:?}");
        })
        .await;
    }
}

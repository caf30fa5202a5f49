use std::sync::Arc;
use std::time::Duration;

use super::support::{RecordingStore, listed, play, play_over};
use super::warnings::Warnings;
use crate::list_watch::{Bookmark, WatchEvent};
use crate::names::TypeMeta;
use crate::reflector::{Config, InitialList, Phase};
use crate::testing::{Draft, FakeListWatch, ScriptedWatch, errors};

fn two_pods() -> FakeListWatch {
    let server = FakeListWatch::pods();
    server.put("x/a");
    server.put("x/b");
    server
}

fn pod(key: &str, version: &str) -> crate::Object {
    Draft::new(key).at(&TypeMeta::new("v1", "Pod"), key, version)
}

fn end_at(resource_version: &str) -> WatchEvent {
    WatchEvent::Bookmark(Bookmark {
        resource_version: resource_version.into(),
        type_meta: Some(TypeMeta::new("v1", "Pod")),
        is_initial_events_end: true,
    })
}

fn bookmark_at(resource_version: &str) -> WatchEvent {
    WatchEvent::Bookmark(Bookmark {
        resource_version: resource_version.into(),
        type_meta: Some(TypeMeta::new("v1", "Pod")),
        is_initial_events_end: false,
    })
}

// Conformance: 18.1
#[tokio::test(start_paused = true)]
async fn the_reflector_streams_unless_config_or_source_rule_it_out_rl_07() {
    let cases = [
        (InitialList::Listed, true, "list 500 at \"0\""),
        (InitialList::Streamed, true, "stream \"\""),
        (InitialList::Streamed, false, "list 500 at \"0\""),
        (InitialList::default(), true, "stream \"\""),
    ];
    for (initial_list, is_able, first) in cases {
        let server = two_pods();
        if !is_able {
            server.decline_watch_list();
        }
        play(server, Config { initial_list, ..Config::default() }, async |scene| {
            scene.settle().await;
            assert_eq!(scene.requests()[0], first);
            assert_eq!(scene.store_calls(), ["replace [x/a@2 x/b@3] at 3"]);
        })
        .await;
    }
}

#[tokio::test(start_paused = true)]
async fn one_request_brings_all_objects_and_continues_as_the_watch_wl_01() {
    play(two_pods(), Config::default(), async |scene| {
        scene.settle().await;
        scene.server.put("x/c");
        scene.server.delete("x/a");
        scene.server.bookmark();
        scene.settle().await;
        assert_eq!(scene.requests(), ["stream \"\""]);
        assert_eq!(
            scene.store_calls(),
            [
                "replace [x/a@2 x/b@3] at 3",
                "add x/c@4",
                "version 4",
                "delete x/a@5",
                "version 5",
                "bookmark 5",
                "version 5",
            ]
        );
        let options = &scene.server.watches()[0];
        assert!((300..600).contains(&options.timeout.as_secs()), "RL-40");
        let status = scene.status();
        assert_eq!(
            (status.phase, status.n_lists, status.n_streamed, status.n_watches),
            (Phase::Watching, 1, 1, 1)
        );
        assert_eq!((status.n_events, status.n_bookmarks), (2, 2));
        assert_eq!(status.last_error, None);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_relist_streams_from_the_last_version_wl_01() {
    play(two_pods(), Config::default(), async |scene| {
        scene.settle().await;
        scene.server.put("x/c");
        scene.settle().await;
        scene.server.delete_unseen("x/a");
        scene.server.send(&WatchEvent::Error(errors::expired()));
        scene.pass(2000).await;
        assert_eq!(scene.requests(), ["stream \"\"", "stream \"4\""]);
        assert_eq!(scene.store_calls().last().unwrap(), "replace [x/b@3 x/c@4] at 5");
        // A normal end of the watch needs no stream.
        scene.server.close_watches();
        scene.settle().await;
        assert_eq!(scene.requests()[2..], ["watch \"5\""]);
    })
    .await;
}

// Conformance: 17.13
#[tokio::test(start_paused = true)]
async fn reflector_list_and_watch() {
    for (initial_list, requests) in [
        (InitialList::Streamed, &["stream \"\""][..]),
        (InitialList::Listed, &["list 500 at \"0\"", "watch \"1\""][..]),
    ] {
        play(FakeListWatch::pods(), Config { initial_list, ..Config::default() }, async |scene| {
            scene.settle().await;
            for name in ["foo", "bar", "baz", "qux", "zoo"] {
                scene.server.put(name);
            }
            scene.settle().await;
            assert_eq!(scene.requests(), requests);
            assert!(scene.server.watches()[0].allow_bookmarks);
            let adds: Vec<String> =
                scene.store_calls().into_iter().filter(|call| call.starts_with("add")).collect();
            assert_eq!(adds, ["add foo@2", "add bar@3", "add baz@4", "add qux@5", "add zoo@6"]);
        })
        .await;
    }
}

#[tokio::test(start_paused = true)]
async fn updates_and_deletes_before_the_end_bookmark_count_wl_02() {
    let server = FakeListWatch::pods();
    let (watch, stream) = ScriptedWatch::new(100);
    server.answer_watch(stream);
    play(server, Config::default(), async |scene| {
        for event in [
            WatchEvent::Added(pod("x/a", "2")),
            WatchEvent::Added(pod("x/b", "3")),
            WatchEvent::Added(pod("x/c", "4")),
            WatchEvent::Modified(pod("x/a", "5")),
            WatchEvent::Deleted(pod("x/b", "6")),
            bookmark_at("6"),
            WatchEvent::Added(pod("x/d", "7")),
        ] {
            watch.send(Ok(event)).await;
        }
        scene.settle().await;
        assert_eq!(scene.store_calls(), [""; 0], "WL-09");
        assert_eq!(scene.phase(), Phase::Listing);
        watch.send(Ok(end_at("9"))).await;
        scene.settle().await;
        assert_eq!(scene.store_calls(), ["replace [x/a@5 x/c@4 x/d@7] at 9"]);
        watch.send(Ok(WatchEvent::Added(pod("x/e", "10")))).await;
        scene.settle().await;
        assert_eq!(scene.store_calls(), ["add x/e@10", "version 10"]);
    })
    .await;
    assert!(watch.is_stopped());
}

#[tokio::test(start_paused = true)]
async fn the_stores_transformer_gets_the_initial_events_wl_02_wl_05() {
    let server = two_pods();
    let store = RecordingStore::with_transformer(Arc::new(|object: crate::Object| {
        if object.key().name() == "b" {
            return Err(crate::delta_fifo::TransformError("not this one".into()));
        }
        let text = object.json().replace("\"kind\":\"Pod\"", "\"kind\":\"Pod\",\"seen\":true");
        Ok(crate::Object::parse(text.as_bytes(), None).unwrap())
    }));
    play_over(server, store, Config::default(), async |scene| {
        scene.settle().await;
        // An object that the transformer rejects is left out, as in the watch phase (RL-51).
        assert_eq!(scene.store_calls(), ["replace [x/a@2] at 3"]);
        assert!(scene.store.replaced()[0].json().contains("\"seen\":true"));
    })
    .await;
}

// Conformance: G.21
#[tokio::test(start_paused = true)]
async fn only_the_annotated_bookmark_of_the_expected_type_ends_the_initial_events_wl_03() {
    let server = FakeListWatch::pods();
    let (watch, stream) = ScriptedWatch::new(100);
    server.answer_watch(stream);
    let config = Config { type_meta: Some(TypeMeta::new("v1", "Pod")), ..Config::default() };
    play(server, config, async |scene| {
        watch.send(Ok(WatchEvent::Added(pod("x/a", "2")))).await;
        let stranger = Bookmark {
            resource_version: "3".into(),
            type_meta: Some(TypeMeta::new("v1", "Secret")),
            is_initial_events_end: true,
        };
        watch.send(Ok(WatchEvent::Bookmark(stranger))).await;
        // `api_list_watch` tests that the annotation must have the value "true".
        watch.send(Ok(bookmark_at("4"))).await;
        scene.settle().await;
        assert_eq!(scene.store_calls(), [""; 0]);
        watch.send(Ok(end_at("5"))).await;
        scene.settle().await;
        assert_eq!(scene.store_calls(), ["replace [x/a@2] at 5"]);
    })
    .await;
}

// Conformance: G.51
#[tokio::test(start_paused = true)]
async fn a_stream_that_ends_early_restarts_or_falls_back_to_a_list_wl_06() {
    // With events: again from the start, at once.
    let server = two_pods();
    let (watch, stream) = ScriptedWatch::new(100);
    server.answer_watch(stream);
    play(server, Config::default(), async |scene| {
        watch.send(Ok(WatchEvent::Added(pod("x/gone", "2")))).await;
        drop(watch);
        scene.settle().await;
        assert_eq!(scene.requests(), ["stream \"\"", "stream \"\""]);
        assert_eq!(scene.requested_at(), [0, 0]);
        assert_eq!(
            scene.store_calls(),
            ["replace [x/a@2 x/b@3] at 3"],
            "no object of the first stream is left"
        );
    })
    .await;

    // After a second, without an event.
    let server = two_pods();
    let (watch, stream) = ScriptedWatch::new(100);
    server.answer_watch(stream);
    play(server, Config::default(), async |scene| {
        scene.pass(1000).await;
        watch.send(Err(errors::connection_reset())).await;
        scene.settle().await;
        assert_eq!(scene.requests(), ["stream \"\"", "stream \"\""]);
        assert_eq!(scene.requested_at(), [0, 1000]);
    })
    .await;

    // At once, without an event.
    let server = two_pods();
    let (watch, stream) = ScriptedWatch::new(100);
    server.answer_watch(stream);
    drop(watch);
    play(server, Config::default(), async |scene| {
        scene.settle().await;
        assert_eq!(scene.requests(), ["stream \"\"", "list 500 at \"0\"", "watch \"3\""]);
        assert_eq!(scene.status().last_error, None, "no failure in the status (WL-07)");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn five_streams_that_end_early_fall_back_to_a_list_with_pauses_between_wl_06() {
    let server = two_pods();
    for _ in 0..5 {
        let (watch, stream) = ScriptedWatch::new(1);
        server.answer_watch(stream);
        watch.send(Ok(WatchEvent::Added(pod("x/a", "2")))).await;
    }
    play(server, Config::default(), async |scene| {
        scene.server.until_lists(1).await;
        scene.settle().await;
        assert_eq!(
            scene.requests(),
            [&["stream \"\""; 5][..], &["list 500 at \"0\"", "watch \"3\""]].concat()
        );
        let at = scene.requested_at();
        let waits: Vec<u128> = at.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert_eq!(waits[0], 0, "the first repetition is immediate");
        // The server answers, so each wait is one of the first step of the back-off.
        assert!(waits[1..4].iter().all(|wait| (800..=1600).contains(wait)), "{waits:?}");
    })
    .await;
}

// Conformance: G.20
#[tokio::test(start_paused = true)]
async fn an_error_at_the_start_of_a_stream_drops_the_version_or_falls_back_to_a_list_wl_07() {
    // An expired or too new version: at once without a version.
    for error in [errors::expired(), errors::too_large_resource_version()] {
        play(two_pods(), Config::default(), async |scene| {
            scene.settle().await;
            scene.server.fail_watch(error.into());
            scene.server.send(&WatchEvent::Error(errors::expired()));
            scene.pass(2000).await;
            assert_eq!(scene.requests(), ["stream \"\"", "stream \"3\"", "stream \"\""]);
            assert_eq!(scene.requested_at()[1], scene.requested_at()[2]);
            // The success clears the flag (WL-04).
            scene.server.send(&WatchEvent::Error(errors::expired()));
            scene.pass(4000).await;
            assert_eq!(scene.requests()[3..], ["stream \"3\""]);
        })
        .await;
    }
    // Any other error: a list, and a stream in the next round.
    for error in [errors::invalid().into(), errors::internal().into(), errors::connection_reset()] {
        let server = two_pods();
        server.fail_watch(error);
        play(server, Config::default(), async |scene| {
            scene.settle().await;
            assert_eq!(scene.requests(), ["stream \"\"", "list 500 at \"0\"", "watch \"3\""]);
            assert_eq!(scene.store_calls(), ["replace [x/a@2 x/b@3] at 3"]);
            assert_eq!((scene.status().n_streamed, scene.status().last_error), (0, None));
            scene.server.send(&WatchEvent::Error(errors::expired()));
            scene.pass(2000).await;
            assert_eq!(scene.requests()[3..], ["stream \"3\""]);
        })
        .await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_refused_connection_and_429_retry_the_stream_after_a_back_off_wl_07() {
    let server = two_pods();
    server.fail_watch(errors::connection_refused());
    server.fail_watch(errors::too_many_requests(Some(Duration::from_secs(9))).into());
    play(server, Config::default(), async |scene| {
        scene.settle().await;
        assert!(matches!(scene.phase(), Phase::Failing { .. }));
        scene.server.until_watches(3).await;
        scene.settle().await;
        assert_eq!(scene.requests(), ["stream \"\""; 3]);
        let at = scene.requested_at();
        assert!((800..1600).contains(&(at[1] - at[0])), "{at:?}");
        assert_eq!(at[2] - at[1], 9000);
        assert_eq!(scene.phase(), Phase::Watching);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn an_error_on_the_stream_restarts_it_or_falls_back_to_a_list_wl_07() {
    let too_many = errors::too_many_requests(Some(Duration::from_secs(20)));
    for (error, then, after) in [
        (errors::expired(), &["stream \"\""][..], 0),
        (too_many, &["stream \"\""][..], 20_000),
        (errors::internal(), &["list 500 at \"0\"", "watch \"3\""][..], 0),
    ] {
        let server = two_pods();
        let (watch, stream) = ScriptedWatch::new(100);
        server.answer_watch(stream);
        play(server, Config::default(), async |scene| {
            watch.send(Ok(WatchEvent::Added(pod("x/gone", "2")))).await;
            watch.send(Ok(WatchEvent::Error(error))).await;
            scene.pass(30_000).await;
            assert_eq!(scene.requests()[1..], *then);
            assert_eq!(scene.requested_at()[1], after);
            assert_eq!(scene.store_calls(), ["replace [x/a@2 x/b@3] at 3"]);
            assert!(watch.is_stopped());
        })
        .await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_version_that_stays_unavailable_leads_to_a_list_without_a_version_wl_07() {
    for error in [errors::expired(), errors::too_large_resource_version()] {
        let server = two_pods();
        server.fail_watch(error.clone().into());
        server.fail_watch(error.into());
        play(server, Config::default(), async |scene| {
            scene.settle().await;
            assert_eq!(scene.requests(), ["stream \"\"", "stream \"\"", "list 500 at \"\"", "watch \"3\""]);
            assert_eq!(scene.requested_at(), [0; 4]);
            assert_eq!(scene.store_calls(), ["replace [x/a@2 x/b@3] at 3"]);
        })
        .await;
    }
}

#[tokio::test(start_paused = true)]
async fn garbage_on_the_stream_falls_back_to_a_list_wl_07() {
    let server = two_pods();
    let (watch, stream) = ScriptedWatch::new(100);
    server.answer_watch(stream);
    play(server, Config::default(), async |scene| {
        watch.send(Err(errors::garbage())).await;
        scene.settle().await;
        assert_eq!(scene.requests(), ["stream \"\"", "list 500 at \"0\"", "watch \"3\""]);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_back_off_of_a_stream_ends_at_once_wl_07() {
    let server = two_pods();
    for _ in 0..9 {
        server.fail_watch(errors::connection_refused());
    }
    // `play` checks that the reflector ends when it is cancelled; client-go waits for the back-off.
    play(server, Config::default(), async |scene| scene.pass(60_000).await).await;
}

// Conformance: 18.2
#[tokio::test(start_paused = true)]
async fn initial_events_end_bookmark_ticker_wl_08() {
    let warnings = Warnings::default();
    let _guard = tracing::subscriber::set_default(warnings.clone());
    // Lists and other watches have no such bookmark, so no warning.
    play(two_pods(), listed(), async |scene| scene.pass(100_000).await).await;
    assert_eq!(warnings.take(), [""; 0]);

    let server = FakeListWatch::pods();
    server.hold_initial_events_end();
    play(server, Config::default(), async |scene| {
        scene.pass(21_000).await;
        let text = "the bookmark that ends the initial events has not arrived yet";
        let [none_for_10, none_for_20] = &warnings.take()[..] else { panic!("one warning each ten seconds") };
        assert_eq!(*none_for_10, format!("{text}: no events received for 10s"));
        assert_eq!(*none_for_20, format!("{text}: no events received for 20s"));
        scene.pass(3500).await;
        scene.server.put("x/a");
        scene.pass(16_000).await;
        let [last_5_ago, last_15_ago] = &warnings.take()[..] else { panic!("one warning each ten seconds") };
        assert_eq!(*last_5_ago, format!("{text}: received last event 5s ago"));
        assert_eq!(*last_15_ago, format!("{text}: received last event 15s ago"));
        scene.server.end_initial_events();
        scene.pass(100_000).await;
        assert_eq!(warnings.take(), [""; 0], "no warning after the bookmark");
    })
    .await;
}

// Conformance: G.23
#[tokio::test(start_paused = true)]
async fn a_stream_that_the_store_rejects_is_closed_and_falls_back_to_a_list_wl_10() {
    let server = two_pods();
    let (watch, stream) = ScriptedWatch::new(100);
    server.answer_watch(stream);
    play(server, Config::default(), async |scene| {
        scene.store.reject("replace");
        watch.send(Ok(WatchEvent::Added(pod("x/a", "2")))).await;
        watch.send(Ok(end_at("3"))).await;
        scene.settle().await;
        assert!(watch.is_stopped());
        assert_eq!(scene.requests(), ["stream \"\"", "list 500 at \"0\"", "watch \"3\""]);
        assert_eq!(scene.store_calls(), ["replace [x/a@2 x/b@3] at 3"]);
        assert_eq!(scene.server.n_open_watches(), 1);
    })
    .await;
}

// Conformance: G.49
#[tokio::test(start_paused = true)]
async fn a_cancelled_stream_is_closed_and_a_fallback_lasts_one_round_rl_12_rl_13_rl_14() {
    let server = two_pods();
    server.hold_initial_events_end();
    play(server.clone(), Config::default(), async |scene| scene.settle().await).await;
    assert_eq!((server.lists().len(), server.watches().len()), (0, 1), "a cancelled stream leads to no list");
    assert_eq!(server.n_open_watches(), 0, "the watch is closed");

    // The fallback to a list lasts one round.
    let server = two_pods();
    server.fail_watch(errors::invalid().into());
    play(server.clone(), Config::default(), async |scene| {
        scene.settle().await;
        scene.server.break_watches(errors::garbage);
        scene.pass(2000).await;
        assert_eq!(scene.requests(), ["stream \"\"", "list 500 at \"0\"", "watch \"3\"", "stream \"3\""]);
    })
    .await;
    assert_eq!(server.n_open_watches(), 0);
}

// Conformance: G.50
#[tokio::test(start_paused = true)]
async fn an_empty_stream_replaces_and_the_first_add_after_it_moves_the_version_rl_29_rl_53() {
    play(two_pods(), Config::default(), async |scene| {
        scene.settle().await;
        scene.server.delete_unseen("x/a");
        scene.server.delete_unseen("x/b");
        scene.server.send(&WatchEvent::Error(errors::expired()));
        scene.pass(2000).await;
        assert_eq!(scene.store_calls(), ["replace [x/a@2 x/b@3] at 3", "replace [] at 5"]);
        assert_eq!(scene.store.objects(), "");
        scene.server.put("x/c");
        scene.settle().await;
        assert_eq!(scene.store_calls(), ["add x/c@6", "version 6"]);
        assert_eq!(scene.status().resource_version, "6");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_ends_right_after_the_initial_events_is_a_very_short_watch_rl_42() {
    play(two_pods(), Config::default(), async |scene| {
        scene.settle().await;
        scene.server.close_watches();
        scene.settle().await;
        assert!(scene.last_error().starts_with("very short watch"), "{}", scene.last_error());
        scene.pass(2000).await;
        assert_eq!(scene.requests(), ["stream \"\"", "stream \"3\""]);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_stream_with_only_dropped_events_is_very_short_rl_55() {
    let server = two_pods();
    let (watch, stream) = ScriptedWatch::new(100);
    server.answer_watch(stream);
    let config = Config { type_meta: Some(TypeMeta::new("v1", "Pod")), ..Config::default() };
    play(server, config, async |scene| {
        let stranger = Draft::new("x/s").at(&TypeMeta::new("v1", "Secret"), "u", "99");
        watch.send(Ok(WatchEvent::Added(stranger))).await;
        drop(watch);
        scene.settle().await;
        assert_eq!(scene.requests(), ["stream \"\"", "list 500 at \"0\"", "watch \"3\""]);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_silent_stream_falls_back_to_a_list_rl_70() {
    let server = two_pods();
    server.hold_initial_events_end();
    play(server, Config::default(), async |scene| {
        scene.pass(109_000).await;
        assert_eq!(scene.requests(), ["stream \"\""]);
        assert_eq!(scene.store_calls(), [""; 0]);
        scene.pass(2000).await;
        assert_eq!(scene.requests(), ["stream \"\"", "list 500 at \"0\"", "watch \"3\""]);
        assert_eq!(scene.store_calls(), ["replace [x/a@2 x/b@3] at 3"]);
        assert_eq!(scene.server.n_open_watches(), 1, "the silent watch is closed");
        assert_eq!((scene.phase(), scene.status().n_silences), (Phase::Watching, 1));
        insta::assert_snapshot!(scene.last_error(), @"no event and no bookmark on the watch for 110s");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_slow_stream_stays_open_rl_70() {
    let server = FakeListWatch::pods();
    server.hold_initial_events_end();
    play(server, Config::default(), async |scene| {
        for idx in 0..10 {
            scene.pass(100_000).await;
            scene.server.put(&*format!("x/{idx}"));
        }
        scene.pass(100_000).await;
        scene.server.end_initial_events();
        scene.settle().await;
        assert_eq!(scene.requests(), ["stream \"\""]);
        assert_eq!(scene.store.replaced().len(), 10);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn unchanged_objects_of_a_stream_are_interned_rl_71() {
    play(two_pods(), Config::default(), async |scene| {
        scene.settle().await;
        let before = scene.store.replaced();
        scene.server.put_unseen("x/b");
        scene.server.send(&WatchEvent::Error(errors::expired()));
        scene.pass(2000).await;
        let after = scene.store.replaced();
        assert!(after[0].is_same(&before[0]) && !after[1].is_same(&before[1]));
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn an_absent_resource_is_a_phase_with_streams_too_rl_72() {
    let server = two_pods();
    for _ in 0..3 {
        server.fail_watch(errors::not_found().into());
        server.fail_list(errors::not_found().into());
    }
    play(server, Config::default(), async |scene| {
        scene.settle().await;
        assert_eq!(scene.phase(), Phase::Absent);
        scene.pass(20_000).await;
        assert_eq!(scene.phase(), Phase::Watching);
        assert_eq!(scene.status().n_streamed, 1);
    })
    .await;
}

use std::sync::Arc;
use std::time::Duration;

use super::support::{Ledger, listed, play, play_over};
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
async fn streams_unless_configured_otherwise_or_the_source_is_unable_rl_07() {
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
            assert_eq!(scene.asked()[0], first);
            assert_eq!(scene.told(), ["replace [x/a@2 x/b@3] at 3"]);
        })
        .await;
    }
}

#[tokio::test(start_paused = true)]
async fn one_request_brings_everything_and_goes_on_as_the_watch_wl_01() {
    play(two_pods(), Config::default(), async |scene| {
        scene.settle().await;
        scene.server.put("x/c");
        scene.server.delete("x/a");
        scene.server.bookmark();
        scene.settle().await;
        assert_eq!(scene.asked(), ["stream \"\""]);
        assert_eq!(
            scene.told(),
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
async fn streams_again_from_the_last_version_wl_01() {
    play(two_pods(), Config::default(), async |scene| {
        scene.settle().await;
        scene.server.put("x/c");
        scene.settle().await;
        scene.server.delete_unseen("x/a");
        scene.server.send(&WatchEvent::Error(errors::expired()));
        scene.pass(2000).await;
        assert_eq!(scene.asked(), ["stream \"\"", "stream \"4\""]);
        assert_eq!(scene.told().last().unwrap(), "replace [x/b@3 x/c@4] at 5");
        // What ends as watches end goes on as a watch.
        scene.server.close_watches();
        scene.settle().await;
        assert_eq!(scene.asked()[2..], ["watch \"5\""]);
    })
    .await;
}

// Conformance: 17.13
#[tokio::test(start_paused = true)]
async fn reflector_list_and_watch() {
    for (initial_list, asked) in [
        (InitialList::Streamed, &["stream \"\""][..]),
        (InitialList::Listed, &["list 500 at \"0\"", "watch \"1\""][..]),
    ] {
        play(FakeListWatch::pods(), Config { initial_list, ..Config::default() }, async |scene| {
            scene.settle().await;
            for name in ["foo", "bar", "baz", "qux", "zoo"] {
                scene.server.put(name);
            }
            scene.settle().await;
            assert_eq!(scene.asked(), asked);
            assert!(scene.server.watches()[0].allow_bookmarks);
            let told: Vec<String> = scene.told().into_iter().filter(|told| told.starts_with("add")).collect();
            assert_eq!(told, ["add foo@2", "add bar@3", "add baz@4", "add qux@5", "add zoo@6"]);
        })
        .await;
    }
}

#[tokio::test(start_paused = true)]
async fn all_that_happens_before_the_end_counts_wl_02() {
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
        assert_eq!(scene.told(), [""; 0], "WL-09");
        assert_eq!(scene.phase(), Phase::Listing);
        watch.send(Ok(end_at("9"))).await;
        scene.settle().await;
        assert_eq!(scene.told(), ["replace [x/a@5 x/c@4 x/d@7] at 9"]);
        watch.send(Ok(WatchEvent::Added(pod("x/e", "10")))).await;
        scene.settle().await;
        assert_eq!(scene.told(), ["add x/e@10", "version 10"]);
    })
    .await;
    assert!(watch.is_stopped());
}

#[tokio::test(start_paused = true)]
async fn the_stores_transformer_sees_what_streams_in_wl_02_wl_05() {
    let server = two_pods();
    let store = Ledger::with_transformer(Arc::new(|object: crate::Object| {
        if object.key().name() == "b" {
            return Err(crate::delta_fifo::TransformError("not this one".into()));
        }
        let text = object.json().replace("\"kind\":\"Pod\"", "\"kind\":\"Pod\",\"seen\":true");
        Ok(crate::Object::parse(text.as_bytes(), None).unwrap())
    }));
    play_over(server, store, Config::default(), async |scene| {
        scene.settle().await;
        // What it cannot take is left out, as of events (RL-51).
        assert_eq!(scene.told(), ["replace [x/a@2] at 3"]);
        assert!(scene.store.replaced()[0].json().contains("\"seen\":true"));
    })
    .await;
}

// Conformance: G.21
#[tokio::test(start_paused = true)]
async fn only_the_right_bookmark_ends_the_initial_events_wl_03() {
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
        // An annotation with any other value than "true" is no mark; `api_list_watch` sees to that.
        watch.send(Ok(bookmark_at("4"))).await;
        scene.settle().await;
        assert_eq!(scene.told(), [""; 0]);
        watch.send(Ok(end_at("5"))).await;
        scene.settle().await;
        assert_eq!(scene.told(), ["replace [x/a@2] at 5"]);
    })
    .await;
}

// Conformance: G.51
#[tokio::test(start_paused = true)]
async fn a_stream_that_ends_early_begins_from_scratch_or_gives_way_to_a_list_wl_06() {
    // With events: from scratch, at once.
    let server = two_pods();
    let (watch, stream) = ScriptedWatch::new(100);
    server.answer_watch(stream);
    play(server, Config::default(), async |scene| {
        watch.send(Ok(WatchEvent::Added(pod("x/gone", "2")))).await;
        drop(watch);
        scene.settle().await;
        assert_eq!(scene.asked(), ["stream \"\"", "stream \"\""]);
        assert_eq!(scene.asked_at(), [0, 0]);
        assert_eq!(scene.told(), ["replace [x/a@2 x/b@3] at 3"], "nothing is kept of the first");
    })
    .await;

    // After a second, without any.
    let server = two_pods();
    let (watch, stream) = ScriptedWatch::new(100);
    server.answer_watch(stream);
    play(server, Config::default(), async |scene| {
        scene.pass(1000).await;
        watch.send(Err(errors::connection_reset())).await;
        scene.settle().await;
        assert_eq!(scene.asked(), ["stream \"\"", "stream \"\""]);
        assert_eq!(scene.asked_at(), [0, 1000]);
    })
    .await;

    // At once and without any.
    let server = two_pods();
    let (watch, stream) = ScriptedWatch::new(100);
    server.answer_watch(stream);
    drop(watch);
    play(server, Config::default(), async |scene| {
        scene.settle().await;
        assert_eq!(scene.asked(), ["stream \"\"", "list 500 at \"0\"", "watch \"3\""]);
        assert_eq!(scene.status().last_error, None, "quietly (WL-07)");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_server_that_breaks_every_stream_off_is_asked_with_pauses_and_then_for_a_list_wl_06() {
    let server = two_pods();
    for _ in 0..5 {
        let (watch, stream) = ScriptedWatch::new(1);
        server.answer_watch(stream);
        watch.send(Ok(WatchEvent::Added(pod("x/a", "2")))).await;
    }
    play(server, Config::default(), async |scene| {
        scene.server.until_lists(1).await;
        scene.settle().await;
        assert_eq!(scene.asked(), [&["stream \"\""; 5][..], &["list 500 at \"0\"", "watch \"3\""]].concat());
        let at = scene.asked_at();
        let waits: Vec<u128> = at.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert_eq!(waits[0], 0, "the first time at once");
        // As after a first failure, each time: the server is there, so this is no reason to wait longer and longer.
        assert!(waits[1..4].iter().all(|wait| (800..=1600).contains(wait)), "{waits:?}");
    })
    .await;
}

// Conformance: G.20
#[tokio::test(start_paused = true)]
async fn what_is_done_about_an_error_at_the_start_wl_07() {
    // Expired or too new: at once without a version.
    for error in [errors::expired(), errors::too_large_resource_version()] {
        play(two_pods(), Config::default(), async |scene| {
            scene.settle().await;
            scene.server.fail_watch(error.into());
            scene.server.send(&WatchEvent::Error(errors::expired()));
            scene.pass(2000).await;
            assert_eq!(scene.asked(), ["stream \"\"", "stream \"3\"", "stream \"\""]);
            assert_eq!(scene.asked_at()[1], scene.asked_at()[2]);
            // The flag is gone with the success (WL-04).
            scene.server.send(&WatchEvent::Error(errors::expired()));
            scene.pass(4000).await;
            assert_eq!(scene.asked()[3..], ["stream \"3\""]);
        })
        .await;
    }
    // Anything else: a list, and a stream again in the next round.
    for error in [errors::invalid().into(), errors::internal().into(), errors::connection_reset()] {
        let server = two_pods();
        server.fail_watch(error);
        play(server, Config::default(), async |scene| {
            scene.settle().await;
            assert_eq!(scene.asked(), ["stream \"\"", "list 500 at \"0\"", "watch \"3\""]);
            assert_eq!(scene.told(), ["replace [x/a@2 x/b@3] at 3"]);
            assert_eq!((scene.status().n_streamed, scene.status().last_error), (0, None));
            scene.server.send(&WatchEvent::Error(errors::expired()));
            scene.pass(2000).await;
            assert_eq!(scene.asked()[3..], ["stream \"3\""]);
        })
        .await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_refused_connection_and_429_are_waited_out_wl_07() {
    let server = two_pods();
    server.fail_watch(errors::connection_refused());
    server.fail_watch(errors::too_many_requests(Some(Duration::from_secs(9))).into());
    play(server, Config::default(), async |scene| {
        scene.settle().await;
        assert!(matches!(scene.phase(), Phase::Failing { .. }));
        scene.server.until_watches(3).await;
        scene.settle().await;
        assert_eq!(scene.asked(), ["stream \"\""; 3]);
        let at = scene.asked_at();
        assert!((800..1600).contains(&(at[1] - at[0])), "{at:?}");
        assert_eq!(at[2] - at[1], 9000);
        assert_eq!(scene.phase(), Phase::Watching);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn what_is_done_about_an_error_on_the_stream_wl_07() {
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
            assert_eq!(scene.asked()[1..], *then);
            assert_eq!(scene.asked_at()[1], after);
            assert_eq!(scene.told(), ["replace [x/a@2 x/b@3] at 3"]);
            assert!(watch.is_stopped());
        })
        .await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_version_that_is_never_there_leads_to_a_list_at_no_version_wl_07() {
    for error in [errors::expired(), errors::too_large_resource_version()] {
        let server = two_pods();
        server.fail_watch(error.clone().into());
        server.fail_watch(error.into());
        play(server, Config::default(), async |scene| {
            scene.settle().await;
            assert_eq!(scene.asked(), ["stream \"\"", "stream \"\"", "list 500 at \"\"", "watch \"3\""]);
            assert_eq!(scene.asked_at(), [0; 4]);
            assert_eq!(scene.told(), ["replace [x/a@2 x/b@3] at 3"]);
        })
        .await;
    }
}

#[tokio::test(start_paused = true)]
async fn garbage_on_the_stream_leads_to_a_list_wl_07() {
    let server = two_pods();
    let (watch, stream) = ScriptedWatch::new(100);
    server.answer_watch(stream);
    play(server, Config::default(), async |scene| {
        watch.send(Err(errors::garbage())).await;
        scene.settle().await;
        assert_eq!(scene.asked(), ["stream \"\"", "list 500 at \"0\"", "watch \"3\""]);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn cancelled_while_backing_off_wl_07() {
    let server = two_pods();
    for _ in 0..9 {
        server.fail_watch(errors::connection_refused());
    }
    // `play` sees that it ends at the moment in which it is cancelled; client-go does not.
    play(server, Config::default(), async |scene| scene.pass(60_000).await).await;
}

// Conformance: 18.2
#[tokio::test(start_paused = true)]
async fn initial_events_end_bookmark_ticker_wl_08() {
    let warnings = Warnings::default();
    let _guard = tracing::subscriber::set_default(warnings.clone());
    // A list and a watch wait for no such bookmark, so there is nothing to warn of.
    play(two_pods(), listed(), async |scene| scene.pass(100_000).await).await;
    assert_eq!(warnings.take(), [""; 0]);

    let server = FakeListWatch::pods();
    server.hold_initial_events_end();
    play(server, Config::default(), async |scene| {
        scene.pass(21_000).await;
        let text = "the bookmark that ends the initial events has not come yet";
        let [none_for_10, none_for_20] = &warnings.take()[..] else { panic!("one each ten seconds") };
        assert_eq!(*none_for_10, format!("{text}: no events received for 10s"));
        assert_eq!(*none_for_20, format!("{text}: no events received for 20s"));
        scene.pass(3500).await;
        scene.server.put("x/a");
        scene.pass(16_000).await;
        let [last_5_ago, last_15_ago] = &warnings.take()[..] else { panic!("one each ten seconds") };
        assert_eq!(*last_5_ago, format!("{text}: received last event 5s ago"));
        assert_eq!(*last_15_ago, format!("{text}: received last event 15s ago"));
        scene.server.end_initial_events();
        scene.pass(100_000).await;
        assert_eq!(warnings.take(), [""; 0], "it has come");
    })
    .await;
}

// Conformance: G.23
#[tokio::test(start_paused = true)]
async fn a_store_that_refuses_what_streamed_in_gets_a_list_and_the_stream_is_closed_wl_10() {
    let server = two_pods();
    let (watch, stream) = ScriptedWatch::new(100);
    server.answer_watch(stream);
    play(server, Config::default(), async |scene| {
        scene.store.refuse("replace");
        watch.send(Ok(WatchEvent::Added(pod("x/a", "2")))).await;
        watch.send(Ok(end_at("3"))).await;
        scene.settle().await;
        assert!(watch.is_stopped());
        assert_eq!(scene.asked(), ["stream \"\"", "list 500 at \"0\"", "watch \"3\""]);
        assert_eq!(scene.told(), ["replace [x/a@2 x/b@3] at 3"]);
        assert_eq!(scene.server.n_open_watches(), 1);
    })
    .await;
}

// Conformance: G.49
#[tokio::test(start_paused = true)]
async fn cancelled_while_streaming_rl_12_rl_13_rl_14() {
    let server = two_pods();
    server.hold_initial_events_end();
    play(server.clone(), Config::default(), async |scene| scene.settle().await).await;
    assert_eq!((server.lists().len(), server.watches().len()), (0, 1), "no list when cancelled");
    assert_eq!(server.n_open_watches(), 0, "a watch that is held is stopped");

    // Falling back lasts one round.
    let server = two_pods();
    server.fail_watch(errors::invalid().into());
    play(server.clone(), Config::default(), async |scene| {
        scene.settle().await;
        scene.server.break_watches(errors::garbage);
        scene.pass(2000).await;
        assert_eq!(scene.asked(), ["stream \"\"", "list 500 at \"0\"", "watch \"3\"", "stream \"3\""]);
    })
    .await;
    assert_eq!(server.n_open_watches(), 0);
}

// Conformance: G.50
#[tokio::test(start_paused = true)]
async fn an_empty_stream_replaces_and_the_first_add_behind_it_moves_the_version_rl_29_rl_53() {
    play(two_pods(), Config::default(), async |scene| {
        scene.settle().await;
        scene.server.delete_unseen("x/a");
        scene.server.delete_unseen("x/b");
        scene.server.send(&WatchEvent::Error(errors::expired()));
        scene.pass(2000).await;
        assert_eq!(scene.told(), ["replace [x/a@2 x/b@3] at 3", "replace [] at 5"]);
        assert_eq!(scene.store.kept(), "");
        scene.server.put("x/c");
        scene.settle().await;
        assert_eq!(scene.told(), ["add x/c@6", "version 6"]);
        assert_eq!(scene.status().resource_version, "6");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_ends_right_behind_what_there_is_was_a_very_short_watch_rl_42() {
    play(two_pods(), Config::default(), async |scene| {
        scene.settle().await;
        scene.server.close_watches();
        scene.settle().await;
        assert!(scene.last_error().starts_with("very short watch"), "{}", scene.last_error());
        scene.pass(2000).await;
        assert_eq!(scene.asked(), ["stream \"\"", "stream \"3\""]);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn what_is_dropped_does_not_save_a_stream_from_being_very_short_rl_55() {
    let server = two_pods();
    let (watch, stream) = ScriptedWatch::new(100);
    server.answer_watch(stream);
    let config = Config { type_meta: Some(TypeMeta::new("v1", "Pod")), ..Config::default() };
    play(server, config, async |scene| {
        let stranger = Draft::new("x/s").at(&TypeMeta::new("v1", "Secret"), "u", "99");
        watch.send(Ok(WatchEvent::Added(stranger))).await;
        drop(watch);
        scene.settle().await;
        assert_eq!(scene.asked(), ["stream \"\"", "list 500 at \"0\"", "watch \"3\""]);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_falls_silent_gives_way_to_a_list_rl_70() {
    let server = two_pods();
    server.hold_initial_events_end();
    play(server, Config::default(), async |scene| {
        scene.pass(109_000).await;
        assert_eq!(scene.asked(), ["stream \"\""]);
        assert_eq!(scene.told(), [""; 0]);
        scene.pass(2000).await;
        assert_eq!(scene.asked(), ["stream \"\"", "list 500 at \"0\"", "watch \"3\""]);
        assert_eq!(scene.told(), ["replace [x/a@2 x/b@3] at 3"]);
        assert_eq!(scene.server.n_open_watches(), 1, "the silent one is closed");
        assert_eq!((scene.phase(), scene.status().n_silences), (Phase::Watching, 1));
        insta::assert_snapshot!(scene.last_error(), @"no event and no bookmark on the watch for 110s");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_slow_stream_is_left_alone_rl_70() {
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
        assert_eq!(scene.asked(), ["stream \"\""]);
        assert_eq!(scene.store.replaced().len(), 10);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn what_streams_in_unchanged_is_what_is_cached_rl_71() {
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
async fn an_absent_resource_is_a_state_where_streams_are_tried_too_rl_72() {
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

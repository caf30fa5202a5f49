use std::time::Duration;

use http::StatusCode;
use tokio::time::Instant;

use super::support::{listed, play};
use crate::list_watch::{ApiError, WatchEvent};
use crate::outages::Outages;
use crate::reflector::{Config, Phase};
use crate::testing::{FakeListWatch, errors};

fn one_pod() -> FakeListWatch {
    let server = FakeListWatch::pods();
    server.put("x/a");
    server
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_ends_resumes_at_once_from_the_last_version_rl_42() {
    play(one_pod(), listed(), async |scene| {
        scene.settle().await;
        scene.server.put("x/b");
        scene.settle().await;
        for end in ["close", "reset"] {
            scene.server.put_unseen("x/c");
            match end {
                "close" => scene.server.close_watches(),
                _ => scene.server.break_watches(errors::connection_reset),
            }
            scene.settle().await;
        }
        assert_eq!(scene.requests(), ["list 500 at \"0\"", "watch \"2\"", "watch \"3\"", "watch \"4\""]);
        assert_eq!(
            scene.store_calls(),
            [
                "replace [x/a@2] at 2",
                "add x/b@3",
                "version 3",
                "add x/c@4",
                "version 4",
                "update x/c@5",
                "version 5"
            ]
        );
        assert_eq!(scene.status().last_error, None);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_watch_of_a_second_without_an_event_resumes_rl_42() {
    play(one_pod(), listed(), async |scene| {
        scene.pass(1100).await;
        scene.server.close_watches();
        scene.settle().await;
        assert_eq!(scene.requests(), ["list 500 at \"0\"", "watch \"2\"", "watch \"2\""]);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_very_short_watch_leads_to_back_off_and_a_relist_rl_42() {
    play(one_pod(), listed(), async |scene| {
        scene.pass(500).await;
        scene.server.close_watches();
        scene.settle().await;
        assert!(matches!(scene.phase(), Phase::Failing { .. }));
        scene.pass(1600).await;
        assert_eq!(
            scene.requests(),
            ["list 500 at \"0\"", "watch \"2\"", "list all at \"2\"", "watch \"2\""]
        );
        assert!(scene.requested_at()[2] >= 1300, "{:?}", scene.requested_at());
        assert_eq!(scene.phase(), Phase::Watching);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn reflector_relists_after_expired_and_finds_deleted_objects() {
    let server = one_pod();
    server.put("x/b");
    play(server, listed(), async |scene| {
        scene.settle().await;
        scene.server.delete_unseen("x/a");
        scene.server.put_unseen("x/c");
        scene.pass(2000).await;
        scene.server.expire_history();
        scene.server.close_watches();
        scene.pass(2000).await;
        // The list is at the last version (RL-44), which this server can still list.
        assert_eq!(
            scene.requests(),
            ["list 500 at \"0\"", "watch \"3\"", "watch \"3\"", "list all at \"3\"", "watch \"5\""]
        );
        assert_eq!(scene.store_calls(), ["replace [x/a@2 x/b@3] at 3", "replace [x/b@3 x/c@5] at 5"]);
        assert_eq!(scene.status().last_error, None, "an expired version is no failure (RL-11)");
    })
    .await;
}

// Conformance: G.17
#[tokio::test(start_paused = true)]
async fn a_list_that_expires_after_an_expired_watch_is_repeated_without_a_version_rl_44() {
    play(one_pod(), listed(), async |scene| {
        scene.settle().await;
        scene.server.fail_list(errors::expired().into());
        scene.server.send(&WatchEvent::Error(errors::expired()));
        scene.pass(2000).await;
        assert_eq!(scene.requests()[2..], ["list all at \"2\"", "list all at \"\"", "watch \"2\""]);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_refused_connection_and_429_retry_the_watch_without_a_list_rl_41() {
    let server = one_pod();
    server.fail_watch(errors::connection_refused());
    server.fail_watch(errors::too_many_requests(Some(Duration::from_secs(9))).into());
    play(server, listed(), async |scene| {
        scene.settle().await;
        assert!(matches!(scene.phase(), Phase::Failing { .. }));
        scene.server.until_watches(3).await;
        scene.settle().await;
        assert_eq!(scene.requests(), ["list 500 at \"0\"", "watch \"2\"", "watch \"2\"", "watch \"2\""]);
        let at = scene.requested_at();
        assert!((800..1600).contains(&(at[2] - at[1])));
        assert_eq!(at[3] - at[2], 9000);
        assert_eq!(scene.phase(), Phase::Watching);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn any_other_failure_to_begin_a_watch_leads_to_a_relist_rl_41() {
    for error in [errors::internal().into(), errors::connection_reset(), errors::expired().into()] {
        let server = one_pod();
        server.fail_watch(error);
        play(server, listed(), async |scene| {
            scene.pass(2000).await;
            assert_eq!(
                scene.requests(),
                ["list 500 at \"0\"", "watch \"2\"", "list all at \"2\"", "watch \"2\""]
            );
        })
        .await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_429_on_the_watch_delays_the_next_watch_without_a_list_rl_44() {
    play(one_pod(), listed(), async |scene| {
        scene.settle().await;
        let error = errors::too_many_requests(Some(Duration::from_secs(30)));
        scene.server.send(&WatchEvent::Error(error));
        scene.pass(29_000).await;
        assert_eq!(scene.requests().len(), 2);
        scene.pass(2000).await;
        assert_eq!(scene.requests()[2..], ["watch \"2\""]);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn any_other_error_on_the_watch_leads_to_a_relist_rl_44() {
    for error in [errors::internal(), errors::status(500, "StoreReadError", "corrupt"), errors::forbidden()] {
        play(one_pod(), listed(), async |scene| {
            scene.settle().await;
            scene.server.put("x/b");
            scene.server.send(&WatchEvent::Error(error));
            scene.pass(2000).await;
            assert_eq!(scene.requests()[2..], ["list all at \"3\"", "watch \"3\""]);
            assert!(
                scene.last_error().starts_with("failed to watch <unspecified>: "),
                "{}",
                scene.last_error()
            );
        })
        .await;
    }
}

#[tokio::test(start_paused = true)]
async fn internal_errors_are_retried_for_the_configured_time_rl_47() {
    let config = Config { max_internal_error_retry: Duration::from_secs(60), ..listed() };
    play(one_pod(), config, async |scene| {
        for _ in 0..2 {
            scene.settle().await;
            scene.server.send(&WatchEvent::Error(errors::internal()));
            scene.pass(29_000).await;
        }
        assert_eq!(scene.requests(), ["list 500 at \"0\"", "watch \"2\"", "watch \"2\"", "watch \"2\""]);
        scene.pass(10_000).await;
        scene.server.send(&WatchEvent::Error(errors::internal()));
        scene.pass(2000).await;
        assert_eq!(
            scene.requests()[4..],
            ["list all at \"2\"", "watch \"2\""],
            "the budget is spent (RW-02)"
        );
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn garbage_on_the_watch_leads_to_a_relist_wt_02() {
    play(one_pod(), listed(), async |scene| {
        scene.pass(5000).await;
        scene.server.break_watches(errors::garbage);
        scene.pass(2000).await;
        assert_eq!(scene.requests()[2..], ["list all at \"2\"", "watch \"2\""]);
        assert!(scene.last_error().contains("malformed watch event"), "{}", scene.last_error());
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_silent_watch_is_closed_and_resumed_if_the_server_sends_bookmarks_rl_70() {
    play(one_pod(), listed(), async |scene| {
        scene.settle().await;
        scene.server.bookmark();
        scene.server.silence_watches();
        scene.server.put_unseen("x/b");
        scene.pass(109_000).await;
        assert_eq!(scene.status().n_silences, 0);
        assert!(scene.status().last_sign_of_life.unwrap() < scene.begun_at + Duration::from_secs(1));
        scene.pass(2000).await;
        assert_eq!(scene.requests(), ["list 500 at \"0\"", "watch \"2\"", "watch \"2\""]);
        assert_eq!(
            scene.store_calls().last().unwrap(),
            "version 3",
            "the next watch brings the missed event"
        );
        assert_eq!(scene.status().n_silences, 1);
        insta::assert_snapshot!(scene.last_error(), @"no event and no bookmark on the watch for 110s");
        assert_eq!(scene.server.n_open_watches(), 1, "the silent watch is closed");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_silent_watch_stays_open_if_the_server_sends_no_bookmarks_rl_70() {
    play(one_pod(), listed(), async |scene| {
        scene.pass(3_600_000).await;
        assert_eq!(scene.requests(), ["list 500 at \"0\"", "watch \"2\""]);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn bookmarks_keep_a_watch_open_rl_70() {
    play(one_pod(), listed(), async |scene| {
        for _ in 0..60 {
            scene.pass(60_000).await;
            scene.server.bookmark();
        }
        scene.settle().await;
        assert_eq!(scene.requests().len(), 2);
        assert_eq!(scene.status().n_bookmarks, 60);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_server_that_fails_every_watch_gets_lists_with_back_off_rl_10() {
    let server = one_pod();
    for _ in 0..1000 {
        server.fail_watch(errors::internal().into());
    }
    play(server, listed(), async |scene| {
        scene.pass(600_000).await;
        let n_lists = scene.server.lists().len();
        assert!((28..42).contains(&n_lists), "{n_lists} lists in ten minutes (RL-03)");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_watch_without_an_answer_times_out() {
    let server = one_pod();
    server.hang_watch();
    server.hang_watch();
    play(server, listed(), async |scene| {
        scene.pass(310_000).await;
        assert!(scene.last_error().contains("no answer to watch within 300s"), "{}", scene.last_error());
        // `play` cancels it while the second request hangs.
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_back_off_ends_at_once_rl_45() {
    let server = one_pod();
    server.fail_list(errors::internal().into());
    play(server, listed(), async |scene| scene.settle().await).await;
}

#[tokio::test(start_paused = true)]
async fn the_last_sign_of_life_is_the_time_of_the_last_event() {
    play(one_pod(), listed(), async |scene| {
        scene.settle().await;
        assert_eq!(scene.status().last_sign_of_life, Some(scene.begun_at));
        // One event after a wait, then many at once.
        for n_events in [1, 200] {
            scene.pass(30_000).await;
            let sent_at = Instant::now();
            for _ in 0..n_events {
                scene.server.put("x/b");
            }
            scene.settle().await;
            assert_eq!(scene.status().last_sign_of_life, Some(sent_at));
        }
        assert_eq!(scene.status().n_events, 201);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn only_a_change_of_the_phase_wakes_waiters() {
    play(one_pod(), listed(), async |scene| {
        scene.settle().await;
        let mut phase = scene.phase_receiver();
        phase.borrow_and_update();
        scene.server.put("x/b");
        scene.server.bookmark();
        scene.settle().await;
        assert!(!phase.has_changed().unwrap());
        assert_eq!(scene.status().n_events, 1);
        scene.server.send(&WatchEvent::Error(errors::forbidden()));
        scene.settle().await;
        assert!(phase.has_changed().unwrap());
        assert_eq!(*phase.borrow_and_update(), Phase::Forbidden);
        assert!(scene.last_error().contains("403 Forbidden"), "{}", scene.last_error());
    })
    .await;
}

/// Fails the first requests, lets seven back-offs pass, and returns how long after the end of the outage the
/// reflector asked again, in seconds.
async fn asked_again_after(error: fn() -> ApiError, is_noticed: bool) -> f64 {
    let server = one_pod();
    for _ in 0..20 {
        server.fail_list(error());
    }
    let outages = Outages::default();
    let config = Config { outages: Some(outages.clone()), ..listed() };
    let mut took = 0.0;
    play(server, config, async |scene| {
        if is_noticed {
            outages.answered(None);
        }
        scene.server.until_lists(7).await;
        scene.settle().await;
        let ended_at = Instant::now();
        outages.answered(Some(StatusCode::OK));
        scene.server.until_lists(8).await;
        took = ended_at.elapsed().as_secs_f64();
    })
    .await;
    took
}

#[tokio::test(start_paused = true)]
async fn the_end_of_an_outage_ends_the_back_off_soon_rl_75() {
    let soon = asked_again_after(errors::connection_refused, true).await;
    assert!((0.8..1.6).contains(&soon), "{soon} s");
    // Any error: the server may have answered with it when it stopped.
    let soon = asked_again_after(|| errors::internal().into(), true).await;
    assert!((0.8..1.6).contains(&soon), "{soon} s");
}

#[tokio::test(start_paused = true)]
async fn a_back_off_outside_of_an_outage_and_one_that_the_server_asked_for_last_rl_75() {
    let whole = asked_again_after(errors::connection_refused, false).await;
    assert!((30.0..60.0).contains(&whole), "{whole} s");
    let asked_for = || errors::too_many_requests(Some(Duration::from_secs(100))).into();
    let whole = asked_again_after(asked_for, true).await;
    assert!((99.0..101.0).contains(&whole), "{whole} s");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_answers_now_and_then_is_asked_ever_less_often_rl_75() {
    let server = one_pod();
    for _ in 0..20 {
        server.fail_list(errors::connection_refused());
    }
    let outages = Outages::default();
    let config = Config { outages: Some(outages.clone()), ..listed() };
    play(server, config, async |scene| {
        let mut waits = Vec::new();
        for n in 1..=5 {
            outages.answered(None);
            scene.server.until_lists(n).await;
            scene.settle().await;
            let ended_at = Instant::now();
            outages.answered(Some(StatusCode::OK));
            scene.server.until_lists(n + 1).await;
            waits.push(ended_at.elapsed());
        }
        let floors = [800, 1600, 3200, 6400, 12_800].map(Duration::from_millis);
        // Of two growing waits the shorter one counts, and settling has taken a moment of it.
        let moment = Duration::from_millis(2);
        assert!(waits.iter().zip(floors).all(|(wait, floor)| *wait + moment >= floor), "{waits:?}");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn the_waits_of_an_outage_do_not_count_for_the_failures_after_it_rl_75() {
    let server = one_pod();
    for _ in 0..9 {
        server.fail_list(errors::connection_refused());
    }
    let outages = Outages::default();
    let config = Config { outages: Some(outages.clone()), ..listed() };
    play(server, config, async |scene| {
        outages.answered(None);
        scene.server.until_lists(7).await;
        scene.settle().await;
        // The server answers, and refuses twice more.
        outages.answered(Some(StatusCode::OK));
        scene.server.until_lists(8).await;
        let mut waits = Vec::new();
        for n in [9, 10] {
            let failed_at = Instant::now();
            scene.server.until_lists(n).await;
            waits.push(failed_at.elapsed().as_secs_f64());
        }
        let ranges = [1.6..3.2, 3.2..6.4];
        assert!(waits.iter().zip(&ranges).all(|(wait, range)| range.contains(wait)), "{waits:?}");
    })
    .await;
}

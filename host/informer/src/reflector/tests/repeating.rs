//! Requests that are made again, and how soon: the waits of client-go, its REST client's included.

use std::io;
use std::time::Duration;

use super::support::{Scene, listed, play};
use crate::list_watch::{ApiError, Status, Unanswered, WatchEvent};
use crate::reflector::{Config, Phase};
use crate::testing::{FakeListWatch, errors};

fn one_pod() -> FakeListWatch {
    let server = FakeListWatch::pods();
    server.put("x/a");
    server
}

/// As `ApiListWatch` makes it of a connection that broke before the answer.
fn unanswered() -> ApiError {
    ApiError::Transport(Unanswered(io::Error::from(io::ErrorKind::ConnectionReset).into()).into())
}

/// 503 or 429, with how many seconds to wait.
fn come_back(status: Status, seconds: u64) -> ApiError {
    Status { retry_after: Some(Duration::from_secs(seconds)), ..status }.into()
}

fn unavailable() -> Status {
    errors::status(503, "ServiceUnavailable", "starting")
}

/// The waits between requests, in milliseconds.
fn waits(scene: &Scene) -> Vec<u128> {
    scene.asked_at().windows(2).map(|pair| pair[1] - pair[0]).collect()
}

#[tokio::test(start_paused = true)]
async fn a_watch_without_an_answer_is_asked_for_each_second_for_as_long_as_that_lasts() {
    for (config, first) in [(listed(), 1), (Config::default(), 0)] {
        let server = one_pod();
        for _ in 0..300 {
            server.fail_watch(unanswered());
        }
        play(server, config, async |scene| {
            scene.pass(1500).await;
            // A dead watch is never quiet.
            assert!(matches!(scene.phase(), Phase::Failing { .. }), "{:?}", scene.phase());
            assert!(scene.last_error().contains("no answer came"), "{}", scene.last_error());
            scene.server.until_watches(301).await;
            scene.settle().await;
            assert_eq!(waits(scene)[first..], [1000; 300]);
            assert_eq!(scene.phase(), Phase::Watching);
            // None of it was a step of the back-off.
            scene.server.send(&WatchEvent::Error(errors::expired()));
            let n_listings = scene.server.n_listings();
            scene.server.until_listings(n_listings + 1).await;
            assert!(waits(scene)[first + 300] < 1700);
        })
        .await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_list_without_an_answer_is_asked_for_ten_times_more_before_that_is_a_failure() {
    let server = one_pod();
    for _ in 0..11 {
        server.fail_list(unanswered());
    }
    play(server, listed(), async |scene| {
        scene.server.until_watches(1).await;
        let waits = waits(scene);
        assert_eq!(waits[..10], [1000; 10]);
        assert!((800..1600).contains(&waits[10]), "{waits:?}");
        assert_eq!(waits[11..], [0]);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn who_says_when_to_come_back_is_asked_again_then_ten_times() {
    for status in [errors::too_many_requests(None), unavailable(), errors::internal()] {
        // A list.
        let server = one_pod();
        for _ in 0..11 {
            server.fail_list(come_back(status.clone(), 2));
        }
        play(server, listed(), async |scene| {
            scene.server.until_watches(1).await;
            let waits = waits(scene);
            assert_eq!(waits[..10], [2000; 10]);
            // The back-off has not grown; what the server said counts as well.
            assert_eq!(waits[10], 2000, "{waits:?}");
        })
        .await;
        // A watch.
        let server = one_pod();
        for _ in 0..10 {
            server.fail_watch(come_back(status.clone(), 2));
        }
        play(server, listed(), async |scene| {
            scene.server.until_watches(11).await;
            assert_eq!(waits(scene)[1..], [2000; 10]);
            assert_eq!(scene.server.lists().len(), 1);
        })
        .await;
    }
}

#[tokio::test(start_paused = true)]
async fn who_only_says_no_is_not_asked_again_at_once() {
    for status in [unavailable(), errors::internal(), errors::forbidden()] {
        let server = one_pod();
        server.fail_list(status.into());
        play(server, listed(), async |scene| {
            scene.server.until_watches(1).await;
            assert!((800..1600).contains(&waits(scene)[0]), "{:?}", waits(scene));
        })
        .await;
    }
    // Nor is a version waited for that the server does not have, though it says when to come back.
    let server = one_pod();
    server.fail_list(come_back(errors::too_large_resource_version(), 1));
    play(server, listed(), async |scene| {
        scene.settle().await;
        assert_eq!(scene.asked(), ["list 500 at \"0\"", "list 500 at \"\"", "watch \"2\""]);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_server_that_wants_to_be_asked_at_once_or_never_is_asked_within_reason() {
    for (seconds, expected) in [(0, 100), (100_000, 300_000)] {
        let server = one_pod();
        server.fail_list(come_back(unavailable(), seconds));
        play(server, listed(), async |scene| {
            scene.server.until_watches(1).await;
            assert_eq!(waits(scene)[0], expected);
        })
        .await;
    }
}

/// RL-03: what is wrong now and then for long, as behind a bad proxy, is not answered with waits of a minute.
#[tokio::test(start_paused = true)]
async fn the_waits_of_a_long_outage_begin_again_every_two_minutes_as_in_client_go() {
    let server = one_pod();
    for _ in 0..1000 {
        server.fail_watch(errors::connection_refused());
    }
    play(server, listed(), async |scene| {
        scene.pass(600_000).await;
        let waits = waits(scene);
        assert!((28..=42).contains(&waits.len()), "{} tries in ten minutes", waits.len());
        let n_short = waits.iter().filter(|wait| **wait < 1600).count();
        assert!((4..=6).contains(&n_short), "{waits:?}");
    })
    .await;
}

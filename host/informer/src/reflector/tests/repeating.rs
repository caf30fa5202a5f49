//! Repeated requests and the waits between them: those of client-go and of its REST client.

use std::io;
use std::time::Duration;

use super::support::{Scene, listed, play};
use crate::list_watch::{ApiError, Status, Unanswered, WatchEvent};
use crate::outages::Outages;
use crate::reflector::{Config, Phase};
use crate::testing::{FakeListWatch, errors};

fn one_pod() -> FakeListWatch {
    let server = FakeListWatch::pods();
    server.put("x/a");
    server
}

/// The error of `ApiListWatch` for a connection that broke before the answer.
fn unanswered() -> ApiError {
    ApiError::Transport(Unanswered(io::Error::from(io::ErrorKind::ConnectionReset).into()).into())
}

/// 503 or 429 with a `Retry-After`.
fn with_retry_after(status: Status, seconds: u64) -> ApiError {
    Status { retry_after: Some(Duration::from_secs(seconds)), ..status }.into()
}

fn unavailable() -> Status {
    errors::status(503, "ServiceUnavailable", "starting")
}

/// The waits between requests, in milliseconds.
fn waits(scene: &Scene) -> Vec<u128> {
    scene.requested_at().windows(2).map(|pair| pair[1] - pair[0]).collect()
}

#[tokio::test(start_paused = true)]
async fn an_unanswered_watch_is_repeated_each_second_without_limit() {
    for (config, first) in [(listed(), 1), (Config::default(), 0)] {
        let server = one_pod();
        for _ in 0..300 {
            server.fail_watch(unanswered());
        }
        play(server, config, async |scene| {
            scene.pass(1500).await;
            // The status shows the failure.
            assert!(matches!(scene.phase(), Phase::Failing { .. }), "{:?}", scene.phase());
            assert!(scene.last_error().contains("no answer arrived"), "{}", scene.last_error());
            scene.server.until_watches(301).await;
            scene.settle().await;
            assert_eq!(waits(scene)[first..], [1000; 300]);
            assert_eq!(scene.phase(), Phase::Watching);
            // The back-off has not grown.
            scene.server.send(&WatchEvent::Error(errors::expired()));
            let n_listings = scene.server.n_listings();
            scene.server.until_listings(n_listings + 1).await;
            assert!(waits(scene)[first + 300] < 1700);
        })
        .await;
    }
}

/// The client drops a request whose answer does not come in time, and cannot notice that.
#[tokio::test(start_paused = true)]
async fn an_unanswered_request_begins_an_outage_rl_75() {
    let cases: [(fn() -> ApiError, bool); 2] = [(unanswered, true), (|| errors::internal().into(), false)];
    for (error, is_outage) in cases {
        for is_list in [true, false] {
            let server = one_pod();
            match is_list {
                true => server.fail_list(error()),
                false => server.fail_watch(error()),
            }
            let outages = Outages::default();
            let config = Config { outages: Some(outages.clone()), ..listed() };
            play(server, config, async |scene| {
                scene.settle().await;
                assert_eq!(outages.is_out(), is_outage, "{}", scene.last_error());
            })
            .await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_unanswered_list_is_repeated_ten_times_before_it_fails() {
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
async fn a_request_with_retry_after_is_repeated_ten_times() {
    for status in [errors::too_many_requests(None), unavailable(), errors::internal()] {
        // A list.
        let server = one_pod();
        for _ in 0..11 {
            server.fail_list(with_retry_after(status.clone(), 2));
        }
        play(server, listed(), async |scene| {
            scene.server.until_watches(1).await;
            let waits = waits(scene);
            assert_eq!(waits[..10], [2000; 10]);
            // The first step of the back-off, but not less than the server asks for.
            assert_eq!(waits[10], 2000, "{waits:?}");
        })
        .await;
        // A watch.
        let server = one_pod();
        for _ in 0..10 {
            server.fail_watch(with_retry_after(status.clone(), 2));
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
async fn a_failure_without_retry_after_backs_off() {
    for status in [unavailable(), errors::internal(), errors::forbidden()] {
        let server = one_pod();
        server.fail_list(status.into());
        play(server, listed(), async |scene| {
            scene.server.until_watches(1).await;
            assert!((800..1600).contains(&waits(scene)[0]), "{:?}", waits(scene));
        })
        .await;
    }
    // A version that the server does not have is not waited for, in spite of its `Retry-After`.
    let server = one_pod();
    server.fail_list(with_retry_after(errors::too_large_resource_version(), 1));
    play(server, listed(), async |scene| {
        scene.settle().await;
        assert_eq!(scene.requests(), ["list 500 at \"0\"", "list 500 at \"\"", "watch \"2\""]);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_repetition_waits_at_least_100_ms_and_at_most_5_minutes() {
    for (seconds, expected) in [(0, 100), (100_000, 300_000)] {
        let server = one_pod();
        server.fail_list(with_retry_after(unavailable(), seconds));
        play(server, listed(), async |scene| {
            scene.server.until_watches(1).await;
            assert_eq!(waits(scene)[0], expected);
        })
        .await;
    }
}

/// RL-03: during a long and intermittent outage, as behind a bad proxy, not every wait is as long as a
/// minute.
#[tokio::test(start_paused = true)]
async fn the_back_off_of_a_long_outage_restarts_every_two_minutes_as_in_client_go() {
    let server = one_pod();
    for _ in 0..1000 {
        server.fail_watch(errors::connection_refused());
    }
    play(server, listed(), async |scene| {
        scene.pass(600_000).await;
        let waits = waits(scene);
        assert!((28..=42).contains(&waits.len()), "{} requests in ten minutes", waits.len());
        let n_short = waits.iter().filter(|wait| **wait < 1600).count();
        assert!((4..=6).contains(&n_short), "{waits:?}");
    })
    .await;
}

use std::num::NonZeroU32;
use std::time::Duration;

use super::support::{listed, play};
use crate::list_watch::ApiError;
use crate::reflector::{Config, Phase};
use crate::testing::{FakeListWatch, Serving, errors};

fn three_pods() -> FakeListWatch {
    let server = FakeListWatch::pods();
    for key in ["x/a", "x/b", "y/c"] {
        server.put(key);
    }
    server
}

fn paged(page_size: u32) -> Config {
    Config { page_size: NonZeroU32::new(page_size), ..listed() }
}

#[tokio::test(start_paused = true)]
async fn the_first_list_is_at_version_zero_and_the_watch_at_the_lists_version_rl_20() {
    play(three_pods(), listed(), async |scene| {
        scene.settle().await;
        assert_eq!(scene.requests(), ["list 500 at \"0\"", "watch \"4\""]);
        assert_eq!(scene.store_calls(), ["replace [x/a@2 x/b@3 y/c@4] at 4"]);
        let status = scene.status();
        assert_eq!((status.phase, status.n_lists, status.n_watches), (Phase::Watching, 1, 1));
        assert_eq!((&*status.resource_version, status.last_error), ("4", None));
        assert_eq!(status.last_sign_of_life, Some(scene.begun_at));
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn an_empty_list_replaces_the_contents_rl_29() {
    play(FakeListWatch::pods(), listed(), async |scene| {
        scene.settle().await;
        assert_eq!(scene.store_calls(), ["replace [] at 1"]);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn all_pages_make_one_list_at_the_version_of_the_first_page_pg_02() {
    let server = three_pods();
    server.serve_from(Serving::Storage);
    play(server, paged(2), async |scene| {
        scene.settle().await;
        // The request for the next page has no version (PG-03).
        assert_eq!(scene.requests(), ["list 2 at \"0\"", "list next 2 at \"\"", "watch \"4\""]);
        assert_eq!(scene.store_calls(), ["replace [x/a@2 x/b@3 y/c@4] at 4"]);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn an_expired_page_falls_back_to_a_list_without_pages_pg_04() {
    let server = three_pods();
    server.serve_from(Serving::Storage);
    server.serve_list();
    server.fail_list(errors::expired().into());
    play(server, paged(1), async |scene| {
        scene.settle().await;
        assert_eq!(
            scene.requests(),
            ["list 1 at \"0\"", "list next 1 at \"\"", "list all at \"0\"", "watch \"4\""]
        );
        assert_eq!(scene.store_calls(), ["replace [x/a@2 x/b@3 y/c@4] at 4"]);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_relist_is_not_paged_unless_the_server_pages_at_zero_rl_22() {
    for (serving, relist) in
        [(Serving::WatchCache, "list all at \"4\""), (Serving::Storage, "list 500 at \"4\"")]
    {
        let server = three_pods();
        server.serve_from(serving);
        if serving == Serving::Storage {
            // More than one page at version 0: no watch cache (RL-24).
            for idx in 0..500 {
                server.put_unseen(&*format!("z/{idx}"));
            }
        }
        play(server, listed(), async |scene| {
            scene.settle().await;
            let version = scene.server.resource_version();
            scene.server.break_watches(errors::garbage);
            scene.pass(2000).await;
            let relist = relist.replace('4', &version);
            assert!(scene.requests().contains(&relist), "{:?}", scene.requests());
        })
        .await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_configured_page_size_always_counts_rl_22() {
    play(three_pods(), paged(7), async |scene| {
        scene.settle().await;
        scene.server.break_watches(errors::garbage);
        scene.pass(2000).await;
        assert_eq!(scene.requests(), ["list 7 at \"0\"", "watch \"4\"", "list 7 at \"4\"", "watch \"4\""]);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_list_at_an_unavailable_version_is_repeated_once_without_a_version_rl_23() {
    for error in [errors::expired(), errors::too_large_resource_version()] {
        let server = three_pods();
        server.fail_list(error.into());
        play(server, listed(), async |scene| {
            scene.settle().await;
            assert_eq!(scene.requests(), ["list 500 at \"0\"", "list 500 at \"\"", "watch \"4\""]);
            assert_eq!(scene.requested_at(), [0, 0, 0]);
            assert_eq!(scene.status().last_error, None);
        })
        .await;
    }
}

// Conformance: G.16
#[tokio::test(start_paused = true)]
async fn the_last_version_stays_unavailable_until_a_list_succeeds_rl_23() {
    let server = three_pods();
    server.fail_list(errors::expired().into());
    server.fail_list(errors::expired().into());
    play(server, listed(), async |scene| {
        scene.pass(2000).await;
        let requests = scene.requests();
        assert_eq!(requests, ["list 500 at \"0\"", "list 500 at \"\"", "list 500 at \"\"", "watch \"4\""]);
        scene.server.break_watches(errors::garbage);
        scene.pass(4000).await;
        assert_eq!(scene.requests()[4], "list all at \"4\"", "a success clears the flag (RL-25)");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_failed_list_changes_nothing_and_is_retried_with_back_off_rl_27() {
    let server = three_pods();
    for _ in 0..3 {
        server.fail_list(errors::internal().into());
    }
    play(server, listed(), async |scene| {
        scene.settle().await;
        assert_eq!(
            scene.last_error(),
            "failed to list <unspecified>: Internal error occurred: etcd is gone (500 InternalError)"
        );
        assert!(matches!(scene.phase(), Phase::Failing { .. }));
        assert_eq!(scene.store_calls(), [""; 0]);
        scene.pass(20_000).await;
        assert_eq!(scene.store_calls(), ["replace [x/a@2 x/b@3 y/c@4] at 4"]);
        assert_eq!(scene.phase(), Phase::Watching);
        let at = scene.requested_at();
        let waits: Vec<u128> = at.windows(2).map(|pair| pair[1] - pair[0]).collect();
        for (wait, delay) in waits.iter().zip([800, 1600, 3200]) {
            assert!((delay..=2 * delay).contains(wait), "{waits:?} (RL-02)");
        }
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn the_wait_follows_retry_after_up_to_five_minutes() {
    for (asked_for, waited) in [(20, 20), (100_000, 300)] {
        let server = three_pods();
        server.fail_list(errors::too_many_requests(Some(Duration::from_secs(asked_for))).into());
        play(server, listed(), async |scene| {
            scene.server.until_lists(2).await;
            assert_eq!(scene.requested_at()[1], waited * 1000);
        })
        .await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_list_that_the_store_rejects_is_repeated_with_back_off_rl_25() {
    play(three_pods(), listed(), async |scene| {
        scene.store.reject("replace");
        scene.settle().await;
        assert_eq!(scene.last_error(), "unable to sync list result: the store rejects replace");
        scene.pass(2000).await;
        assert_eq!(
            scene.requests(),
            ["list 500 at \"0\"", "list 500 at \"0\"", "watch \"4\""],
            "the last version stays the same"
        );
        assert_eq!(scene.store_calls(), ["replace [x/a@2 x/b@3 y/c@4] at 4"]);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_relist_interns_unchanged_objects_rl_71() {
    play(three_pods(), listed(), async |scene| {
        scene.settle().await;
        let before = scene.store.replaced();
        scene.server.put_unseen("x/b");
        scene.server.break_watches(errors::garbage);
        scene.pass(2000).await;
        let after = scene.store.replaced();
        assert_eq!(after.len(), 3);
        assert!(after[0].is_same(&before[0]) && after[2].is_same(&before[2]));
        assert!(!after[1].is_same(&before[1]));
        assert_eq!(after[1].resource_version(), "5");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn an_absent_resource_is_a_phase_and_is_listed_again_rl_72() {
    let server = three_pods();
    for _ in 0..4 {
        server.fail_list(errors::not_found().into());
    }
    play(server, listed(), async |scene| {
        for _ in 0..4 {
            let n_lists = scene.server.lists().len();
            scene.settle().await;
            assert_eq!(scene.phase(), Phase::Absent, "also during retries");
            scene.server.until_lists(n_lists.max(1) + 1).await;
        }
        scene.settle().await;
        assert_eq!(scene.phase(), Phase::Watching);
        assert!(scene.last_error().contains("404 NotFound"), "{}", scene.last_error());
        // The resource disappears again, as when its definition is deleted.
        scene.pass(2000).await;
        scene.server.fail_watch(errors::not_found().into());
        scene.server.fail_list(errors::not_found().into());
        scene.server.close_watches();
        scene.settle().await;
        assert_eq!(scene.phase(), Phase::Absent);
        scene.pass(200_000).await;
        assert_eq!(scene.status().n_lists, 2);
        assert_eq!(scene.phase(), Phase::Watching);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_forbidden_resource_is_a_phase() {
    let server = three_pods();
    server.fail_list(errors::forbidden().into());
    play(server, listed(), async |scene| {
        scene.settle().await;
        assert_eq!(scene.phase(), Phase::Forbidden);
        scene.pass(2000).await;
        assert_eq!(scene.phase(), Phase::Watching);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_list_without_an_answer_times_out_and_can_be_cancelled() {
    let server = three_pods();
    server.hang_list();
    server.hang_list();
    play(server, listed(), async |scene| {
        scene.settle().await;
        assert_eq!(scene.phase(), Phase::Listing);
        scene.server.until_lists(2).await;
        assert!(scene.requested_at()[1] > 300_000);
        insta::assert_snapshot!(scene.last_error(), @"failed to list <unspecified>: cannot talk to the API server: no answer to list within 300s");
        // `play` cancels it while the second request hangs.
    })
    .await;
}

#[test]
fn api_errors_are_classified_by_reason_code_and_cause_rl_30_to_33() {
    let class = |code, reason: &str| {
        let error = ApiError::from(errors::status(code, reason, ""));
        [error.is_expired(), error.is_retriable_in_place(), error.is_internal()]
    };
    assert_eq!(class(410, "Expired"), [true, false, false]);
    assert_eq!(class(410, "Gone"), [true, false, false]);
    assert_eq!(class(410, ""), [true, false, false]);
    assert_eq!(class(410, "Whatever"), [true, false, false]);
    assert_eq!(class(410, "Conflict"), [false, false, false]);
    assert_eq!(class(400, "Expired"), [true, false, false]);
    assert_eq!(class(429, ""), [false, true, false]);
    assert_eq!(class(503, "TooManyRequests"), [false, true, false]);
    assert_eq!(class(500, ""), [false, false, true]);
    assert_eq!(class(500, "InternalError"), [false, false, true]);
    assert_eq!(class(500, "StoreReadError"), [false, false, false]);

    assert!(ApiError::from(errors::too_large_resource_version()).is_too_large_rv());
    let by_message = errors::status(504, "Timeout", "Too large resource version: 5, current: 3");
    assert!(ApiError::from(by_message).is_too_large_rv());
    assert!(!ApiError::from(errors::status(504, "Timeout", "too slow")).is_too_large_rv());
    assert!(
        !ApiError::from(errors::status(400, "BadRequest", "Too large resource version: 5")).is_too_large_rv()
    );

    assert!(errors::connection_refused().is_retriable_in_place());
    assert!(!errors::connection_reset().is_retriable_in_place());
}

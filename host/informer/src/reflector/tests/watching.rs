use std::time::Duration;

use super::support::{listed, play};
use crate::list_watch::WatchEvent;
use crate::names::TypeMeta;
use crate::reflector::Config;
use crate::testing::{Draft, FakeListWatch, errors};

#[tokio::test(start_paused = true)]
async fn events_reach_the_store_in_order_and_move_the_version_rl_50() {
    let server = FakeListWatch::pods();
    server.put("x/a");
    play(server, listed(), async |scene| {
        scene.settle().await;
        scene.server.put("x/b");
        scene.server.put("x/a");
        scene.server.delete("x/b");
        scene.server.bookmark();
        scene.settle().await;
        assert_eq!(
            scene.store_calls(),
            [
                "replace [x/a@2] at 2",
                "add x/b@3",
                "version 3",
                "update x/a@4",
                "version 4",
                "delete x/b@5",
                "version 5",
                "bookmark 5",
                "version 5",
            ]
        );
        let status = scene.status();
        assert_eq!((status.n_events, status.n_bookmarks, &*status.resource_version), (3, 1, "5"));
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_watch_requests_five_to_ten_minutes_and_bookmarks_rl_40() {
    let server = FakeListWatch::pods();
    server.end_watches_at_their_timeout();
    play(server, listed(), async |scene| {
        scene.server.until_watches(20).await;
        let watches = scene.server.watches();
        let mut seconds: Vec<u64> = watches.iter().map(|watch| watch.timeout.as_secs()).collect();
        assert!(watches.iter().all(|watch| watch.allow_bookmarks));
        assert!(watches.iter().all(|watch| watch.timeout.subsec_nanos() == 0));
        assert!(seconds.iter().all(|seconds| (300..600).contains(seconds)), "{seconds:?}");
        seconds.sort_unstable();
        seconds.dedup();
        assert!(seconds.len() > 10, "the timeouts are random");
        assert_eq!(scene.server.lists().len(), 1, "watches that end at their timeout need no list");
    })
    .await;
}

// Conformance: 17.30
#[tokio::test(start_paused = true)]
async fn the_minimum_watch_timeout_is_at_least_five_minutes_rl_01() {
    for (configured, range) in [(300, 300..600), (1, 300..600), (1800, 1800..3600)] {
        let config = Config { min_watch_timeout: Duration::from_secs(configured), ..listed() };
        play(FakeListWatch::pods(), config, async |scene| {
            scene.settle().await;
            let timeout = scene.server.watches()[0].timeout.as_secs();
            assert!(range.contains(&timeout), "{timeout}");
        })
        .await;
    }
}

#[tokio::test(start_paused = true)]
async fn events_of_another_type_are_dropped_and_do_not_count_rl_05() {
    let config = Config { type_meta: Some(TypeMeta::new("v1", "Pod")), ..listed() };
    play(FakeListWatch::pods(), config, async |scene| {
        scene.settle().await;
        let stranger = Draft::new("x/s").at(&TypeMeta::new("v1", "Secret"), "u", "99");
        scene.server.send(&WatchEvent::Added(stranger));
        scene.settle().await;
        assert_eq!(scene.store_calls(), ["replace [] at 1"]);
        assert_eq!(scene.status().resource_version, "1", "RL-55");
        // The dropped event does not count, so the watch is very short.
        scene.server.close_watches();
        scene.settle().await;
        assert_eq!(scene.requests().len(), 2);
        assert!(scene.last_error().starts_with("very short watch"));
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn an_event_of_unknown_type_only_moves_the_version_rl_50() {
    play(FakeListWatch::pods(), listed(), async |scene| {
        scene.settle().await;
        let unknown = |resource_version: Option<&str>| WatchEvent::Unknown {
            event_type: "UNHEARD".into(),
            resource_version: resource_version.map(str::to_owned),
        };
        scene.server.send(&unknown(None));
        scene.server.send(&unknown(Some("9")));
        scene.settle().await;
        assert_eq!(scene.store_calls(), ["replace [] at 1", "version 9"]);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn an_error_of_the_store_does_not_end_the_watch_rl_51() {
    play(FakeListWatch::pods(), listed(), async |scene| {
        scene.settle().await;
        scene.store.reject("add");
        scene.server.put("x/a");
        scene.server.put("x/b");
        scene.settle().await;
        assert_eq!(scene.store_calls(), ["replace [] at 1", "version 2", "add x/b@3", "version 3"]);
        assert_eq!(scene.requests().len(), 2);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_watch_without_a_version_keeps_the_version_until_the_first_change_rl_52() {
    let server = FakeListWatch::pods();
    server.list_without_version();
    server.put("x/a");
    server.put("x/b");
    play(server, listed(), async |scene| {
        scene.settle().await;
        assert_eq!(scene.requests(), ["list 500 at \"0\"", "watch \"\""]);
        assert_eq!(scene.store_calls(), ["replace [x/a@2 x/b@3] at", "add x/a@2", "add x/b@3"]);
        scene.server.put("x/c");
        scene.server.put("x/a");
        scene.server.put("x/d");
        scene.settle().await;
        assert_eq!(scene.store_calls(), ["add x/c@4", "update x/a@5", "version 5", "add x/d@6", "version 6"]);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn the_last_version_counts_even_if_it_is_lower_rl_56() {
    play(FakeListWatch::pods(), listed(), async |scene| {
        scene.settle().await;
        let pod = |version| Draft::new("x/a").at(&TypeMeta::new("v1", "Pod"), "u", version);
        scene.server.send(&WatchEvent::Added(pod("90")));
        scene.server.send(&WatchEvent::Modified(pod("10")));
        scene.pass(2000).await;
        scene.server.close_watches();
        scene.settle().await;
        assert_eq!(scene.requests().last().unwrap(), "watch \"10\"");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn the_store_resyncs_each_period_of_the_watch_phase_rl_60() {
    let config = Config { resync_period: Some(Duration::from_secs(60)), ..listed() };
    play(FakeListWatch::pods(), config, async |scene| {
        scene.pass(59_000).await;
        assert_eq!(scene.store_calls(), ["replace [] at 1"]);
        scene.pass(2000).await;
        assert_eq!(scene.store_calls(), ["resync"]);
        scene.pass(120_000).await;
        assert_eq!(scene.store_calls(), ["resync", "resync"]);
        *scene.store.declines_resync.lock() = true;
        scene.pass(120_000).await;
        assert_eq!(scene.store_calls(), [""; 0], "RL-61");
        *scene.store.declines_resync.lock() = false;
        // A relist restarts the period.
        scene.pass(50_000).await;
        scene.store_calls();
        scene.server.break_watches(errors::garbage);
        scene.pass(50_000).await;
        assert_eq!(scene.store_calls(), ["replace [] at 1"]);
        scene.pass(12_000).await;
        assert_eq!(scene.store_calls(), ["resync"]);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn the_period_begins_after_a_slow_resync_rl_60_rs_09() {
    let config = Config { resync_period: Some(Duration::from_secs(60)), ..listed() };
    play(FakeListWatch::pods(), config, async |scene| {
        *scene.store.resync_takes.lock() = Duration::from_secs(50);
        scene.settle().await;
        scene.store_calls();
        scene.pass(60_000).await;
        assert_eq!(scene.store_calls(), ["resync"], "until 110 s");
        let left = Duration::from_secs(169).saturating_sub(scene.begun_at.elapsed());
        tokio::time::sleep(left).await;
        assert_eq!(scene.store_calls(), [""; 0]);
        scene.pass(2000).await;
        assert_eq!(scene.store_calls(), ["resync"]);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn the_store_resyncs_while_the_watch_cannot_begin_rl_60() {
    let config = Config { resync_period: Some(Duration::from_secs(60)), ..listed() };
    let server = FakeListWatch::pods();
    for _ in 0..100 {
        server.fail_watch(errors::connection_refused());
    }
    play(server, config, async |scene| {
        scene.pass(61_000).await;
        assert_eq!(scene.store_calls(), ["replace [] at 1", "resync"]);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn without_a_period_the_store_never_resyncs_rl_62() {
    for resync_period in [None, Some(Duration::ZERO)] {
        let config = Config { resync_period, ..listed() };
        play(FakeListWatch::pods(), config, async |scene| {
            scene.pass(3_600_000).await;
            assert_eq!(scene.store_calls(), ["replace [] at 1"]);
        })
        .await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_failed_resync_leads_to_a_relist_rl_46() {
    let config = Config { resync_period: Some(Duration::from_secs(60)), ..listed() };
    play(FakeListWatch::pods(), config, async |scene| {
        scene.store.reject("resync");
        scene.pass(63_000).await;
        assert_eq!(scene.store_calls(), ["replace [] at 1", "replace [] at 1"]);
        assert_eq!(scene.last_error(), "failed to resync: the store rejects resync");
        assert_eq!(scene.server.n_open_watches(), 1, "the old watch is closed");
    })
    .await;
}

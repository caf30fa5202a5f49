//! Registration, removal, sync and resync: the clauses SI-…, SY-… and RS-….

use super::*;

#[tokio::test(start_paused = true)]
async fn a_late_listener_receives_initial_adds_and_then_changes_si_10() {
    let mut bench = Bench::new();
    for name in ["ns/b", "ns/a", "other/a"] {
        bench.put(name);
    }
    let config = ListenerConfig { namespaces: Namespaces::one("ns"), ..ListenerConfig::default() };
    let mut listener = bench.listen(config);
    bench.put("ns/a");
    assert!(!listener.has_synced());
    assert_eq!(drain(&mut listener), ["add ns/a@2 (initial)", "update ns/a@2→4", "add ns/b@1 (initial)"]);
    assert!(listener.has_synced());
}

#[tokio::test(start_paused = true)]
async fn a_listener_that_sees_more_is_synced_again_after_the_new_initial_adds() {
    let mut bench = Bench::new();
    bench.put("ns/a");
    let config =
        ListenerConfig { namespaces: Namespaces::Only(Default::default()), ..ListenerConfig::default() };
    let mut listener = bench.listen(config);
    assert!(listener.has_synced(), "it sees no namespace, so it has no initial adds");
    listener.set_namespaces(Namespaces::All);
    assert!(!listener.has_synced());
    assert_eq!(drain(&mut listener), ["add ns/a@1 (initial)"]);
    assert!(listener.has_synced());
}

#[tokio::test(start_paused = true)]
async fn a_removed_listener_does_not_affect_others_si_12_si_20() {
    let mut bench = Bench::new();
    let mut first = bench.listener();
    let second = bench.listener();
    let gone = second.handle();
    bench.put("a");
    assert_eq!(bench.processor.n_listeners(), 2);
    drop(second);
    assert_eq!(bench.processor.n_listeners(), 1);
    assert_eq!(gone.stats().pending, 0, "the backlog is dropped");
    assert!(!gone.wait_for_sync().await);
    gone.replay();
    gone.set_namespaces(Namespaces::one("x"));
    gone.finish(&key("a"), Outcome::Done);
    assert_eq!(drain(&mut first), ["add a@1"]);
}

#[tokio::test(start_paused = true)]
async fn a_stop_closes_all_listeners_and_admits_no_more_si_03() {
    let bench = Bench::new();
    let mut listener = bench.listener();
    bench.processor.stop();
    assert!(listener.next().await.is_none());
    assert!(bench.processor.add_listener(ListenerConfig::default()).is_none());
}

// Sync.

#[tokio::test(start_paused = true)]
async fn a_listener_syncs_once_the_informer_has_and_all_initial_adds_are_finished_sy_01() {
    let mut bench = Bench::new();
    let mut listener = bench.listener();
    bench.relist(vec![object("a", 1), object("b", 1)]);
    let first = take(&mut listener).unwrap();
    let second = take(&mut listener).unwrap();
    listener.finish(&first.key, Outcome::Done);
    assert!(!listener.has_synced());
    // A failed initial add is not finished, a parked one is (SY-04).
    listener.finish(&second.key, Outcome::Retry { after: Duration::ZERO });
    assert!(!listener.has_synced());
    park(&mut listener);
    assert!(listener.has_synced());
    bench.put("c");
    assert!(listener.has_synced(), "it stays synced");
}

#[tokio::test(start_paused = true)]
async fn an_initial_add_that_merged_into_a_delete_counts_for_sync_sy_03() {
    let mut bench = Bench::new();
    let mut listener = bench.listen(ListenerConfig { backlog_limit: 0, ..ListenerConfig::default() });
    bench.relist(vec![object("a", 1)]);
    bench.delete("a");
    assert!(!listener.has_synced());
    assert_eq!(drain(&mut listener), ["delete a@1"]);
    assert!(listener.has_synced());
}

#[tokio::test(start_paused = true)]
async fn a_listener_syncs_at_once_with_an_empty_list_sy_05() {
    let mut bench = Bench::new();
    let listener = bench.listener();
    assert!(!listener.has_synced());
    bench.relist(vec![]);
    assert!(listener.has_synced());
    assert!(listener.wait_for_sync().await);
}

// Resync.

#[tokio::test(start_paused = true)]
async fn each_listener_is_resynced_at_its_own_period_rs_02_rs_06() {
    let mut bench = Bench::with_resync(second());
    let listen = |seconds: u64| {
        bench.listen(ListenerConfig {
            resync: Some(Duration::from_secs(seconds)),
            ..ListenerConfig::default()
        })
    };
    let mut listeners = [listen(0), listen(2), listen(3)];
    bench.processor.start();
    bench.put("a");
    for listener in &mut listeners {
        assert_eq!(drain(listener), ["add a@1"]);
    }
    let mut received = Vec::new();
    for _ in 1..=6 {
        tokio::time::advance(second()).await;
        bench.resync();
        received.push(listeners.each_mut().map(|listener| drain(listener).len()));
    }
    assert_eq!(received, [[0, 0, 0], [0, 1, 0], [0, 0, 1], [0, 1, 0], [0, 0, 0], [0, 1, 1]]);
}

#[tokio::test(start_paused = true)]
async fn a_listener_shortens_the_check_period_before_the_start_only_rs_03_rs_04() {
    let bench = Bench::with_resync(Duration::from_secs(10));
    let resync =
        |seconds| ListenerConfig { resync: Some(Duration::from_secs(seconds)), ..ListenerConfig::default() };
    let _early = bench.listen(resync(4));
    assert_eq!(bench.processor.start(), Some(Duration::from_secs(4)));
    let _late = bench.listen(resync(1));
    let is_due = || bench.processor.should_resync(Instant::now());
    tokio::time::advance(second()).await;
    assert!(!is_due(), "the late listener is resynced with the informer's period");
    tokio::time::advance(Duration::from_secs(3)).await;
    assert!(is_due());
    assert_eq!(bench.processor.start(), None, "an informer starts once");
}

#[tokio::test(start_paused = true)]
async fn an_earlier_listener_keeps_its_first_due_time_when_the_check_period_is_shortened_rs_03_rs_07() {
    let mut bench = Bench::with_resync(Duration::from_secs(10));
    let mut early = bench.listener();
    tokio::time::advance(Duration::from_secs(3)).await;
    let shorter = ListenerConfig { resync: Some(Duration::from_secs(4)), ..ListenerConfig::default() };
    let mut late = bench.listen(shorter);
    assert_eq!(bench.processor.start(), Some(Duration::from_secs(4)));
    bench.put("a");
    for listener in [&mut early, &mut late] {
        assert_eq!(drain(listener), ["add a@1"]);
    }
    // The ticks are at 7 s, 11 s and so on. The early listener is due at 10 s, and 10 s after its resync.
    let mut received = Vec::new();
    for _ in 0..5 {
        tokio::time::advance(Duration::from_secs(4)).await;
        bench.resync();
        received.push([&mut early, &mut late].map(|listener| drain(listener).len()));
    }
    assert_eq!(received, [[0, 1], [1, 1], [0, 1], [0, 1], [1, 1]]);
}

#[tokio::test(start_paused = true)]
async fn only_resyncing_listeners_receive_updates_without_a_change_pd_41_pd_42_rs_08() {
    let mut bench = Bench::with_resync(second());
    let mut never =
        bench.listen(ListenerConfig { resync: Some(Duration::ZERO), ..ListenerConfig::default() });
    bench.processor.start();
    bench.relist(vec![object("a", 1)]);
    drain(&mut never);
    bench.relist(vec![object("a", 1)]);
    assert_eq!(drain(&mut never), ["update a@1→1"], "a new listener is resyncing until the first tick");
    bench.resync();
    bench.relist(vec![object("a", 1)]);
    assert_eq!(drain(&mut never), [""; 0]);
    bench.relist(vec![object("a", 2)]);
    assert_eq!(drain(&mut never), ["update a@1→2"]);
}

/// Allocations of jemalloc have 1,024 or 1,280 bytes, and each listener has one of these.
#[test]
fn a_listener_fits_an_allocation_of_1024_bytes() {
    let bytes = size_of::<ListenerShared>() + 2 * size_of::<usize>();
    assert!(bytes <= 1024, "{bytes}");
}

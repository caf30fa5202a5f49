//! Replays, inherited deletes, changes of the visible namespaces, and deferred objects.

use super::*;
use crate::selector::{FieldCondition, FieldTest};

#[tokio::test(start_paused = true)]
async fn a_replay_delivers_existing_objects_and_keeps_deletes_of_others() {
    let mut bench = Bench::new();
    let mut listener = bench.listener();
    for name in ["kept", "gone", "parked", "back"] {
        bench.put(name);
    }
    drain(&mut listener);
    bench.put("kept");
    bench.delete("gone");
    bench.put("parked");
    bench.put("brief");
    bench.delete("brief");
    bench.delete("back");
    bench.put("back");
    listener.replay();
    assert!(!listener.has_synced());
    let received = drain(&mut listener);
    assert_eq!(
        received,
        ["delete gone@6", "add back@11 (initial)", "add kept@5 (initial)", "add parked@7 (initial)"]
    );
    assert!(listener.has_synced());
}

#[tokio::test(start_paused = true)]
async fn a_replay_returns_how_many_objects_it_delivers_and_whether_all_were_matched() {
    let mut bench = Bench::new();
    let condition =
        FieldCondition::new("/metadata/name".parse().unwrap(), FieldTest::Differs("\"b\"".into()));
    let conditions = vec![condition.unwrap()];
    let mut listener = bench.listen(ListenerConfig { conditions, ..ListenerConfig::default() });
    for name in ["a", "b", "c"] {
        bench.put(name);
    }
    drain(&mut listener);
    bench.delete("c");
    assert_eq!(listener.replay(), Replayed { n_objects: 1, is_exact: true });
    assert_eq!(drain(&mut listener), ["delete c@4", "add a@1 (initial)"]);
    // More text than is matched at once.
    bench.put(Draft::new("a").annotation("text", &"x".repeat(1 << 20)));
    assert_eq!(listener.replay(), Replayed { n_objects: 2, is_exact: false });
    assert_eq!(drain(&mut listener), ["add a@5 (initial)"]);
}

#[tokio::test(start_paused = true)]
async fn a_replay_delivers_parked_objects_in_their_current_state() {
    let mut bench = Bench::new();
    let mut listener = bench.listener();
    bench.put("a");
    bench.put("gone");
    park(&mut listener);
    drain(&mut listener);
    bench.delete("gone");
    park(&mut listener);
    assert_eq!(listener.stats().parked, 2);
    listener.replay();
    assert_eq!(listener.stats().parked, 0);
    assert_eq!(drain(&mut listener), ["delete gone@3", "add a@1 (initial)"]);
}

#[tokio::test(start_paused = true)]
async fn after_a_replay_only_deletes_of_missing_objects_are_retried() {
    let mut bench = Bench::new();
    let mut listener = bench.listener();
    for name in ["here", "gone", "back"] {
        bench.put(name);
    }
    drain(&mut listener);
    bench.put("here");
    bench.delete("gone");
    bench.delete("back");
    let in_flight: Vec<_> = std::iter::from_fn(|| take(&mut listener)).collect();
    assert_eq!(in_flight.len(), 3);
    bench.put("back");
    listener.replay();
    assert_eq!(peek(&mut listener), "", "one object is never in flight twice");
    for delivery in in_flight {
        listener.finish(&delivery.key, Outcome::Retry { after: Duration::ZERO });
    }
    assert_eq!(drain(&mut listener), ["delete gone@5", "add back@7 (initial)", "add here@4 (initial)"]);
}

#[tokio::test(start_paused = true)]
async fn a_replay_ends_back_off() {
    let mut bench = Bench::new();
    let mut listener = bench.listener();
    bench.put("a");
    bench.put("b");
    drain(&mut listener);
    bench.delete("b");
    assert_eq!(fail(&mut listener), "delete b@3 (attempt 0)");
    listener.replay();
    assert_eq!(drain(&mut listener), ["delete b@3", "add a@1 (initial)"], "the back-off has ended");
}

#[tokio::test(start_paused = true)]
async fn a_delete_during_a_snapshot_is_inherited() {
    let mut bench = Bench::new();
    let mut old = bench.listener();
    bench.put("gone");
    drain(&mut old);
    // A long snapshot is being loaded.
    old.shared().start_snapshot();
    bench.delete("gone");
    let mut new = bench.listener();
    new.begin_after(&old);
    assert_eq!(drain(&mut new), ["delete gone@2"]);
}

#[tokio::test(start_paused = true)]
async fn a_new_listener_inherits_the_deletes_of_the_old_one() {
    let mut bench = Bench::new();
    let mut old = bench.listener();
    for name in ["ns/gone", "ns/tried", "ns/here", "other/gone"] {
        bench.put(name);
    }
    drain(&mut old);
    bench.delete("ns/tried");
    peek(&mut old);
    bench.delete("ns/gone");
    bench.delete("other/gone");
    bench.delete("ns/here");
    bench.put("ns/here");
    let mut new =
        bench.listen(ListenerConfig { namespaces: Namespaces::one("ns"), ..ListenerConfig::default() });
    new.begin_after(&old);
    assert_eq!(drain(&mut new), ["delete ns/tried@5", "delete ns/gone@6", "add ns/here@9 (initial)"]);
    assert_eq!(bench.processor.n_listeners(), 1);
}

/// Returns a draft whose text is longer than the slice of a snapshot that the registration matches.
fn long(name: &str) -> Draft {
    Draft::new(name).field("data", json!("x".repeat(SLICE)))
}

/// Returns a listener whose snapshot is still being loaded after its first object.
fn loading_listener(bench: &Bench, account: BacklogAccount) -> Listener {
    let condition = FieldCondition::new("/metadata/name".parse().unwrap(), FieldTest::Exists).unwrap();
    let conditions = vec![condition];
    let listener = bench.listen(ListenerConfig { conditions, account, ..ListenerConfig::default() });
    assert!(listener.shared().state.lock().since_snapshot.is_some(), "the snapshot is long");
    listener
}

#[tokio::test(start_paused = true)]
async fn no_object_goes_back_to_a_state_before_the_one_that_the_old_listener_delivered() {
    let mut bench = Bench::new();
    let mut old = bench.listener();
    for name in ["ahead", "again", "gone"] {
        bench.put(name);
    }
    drain(&mut old);
    let mut new = bench.listener();
    bench.put("ahead");
    bench.delete("gone");
    assert_eq!(drain(&mut old), ["update ahead@1→4", "delete gone@5"]);
    bench.delete("again");
    bench.put("again");
    new.begin_after(&old);
    assert_eq!(drain(&mut new), ["add again@7 (initial)", "add ahead@4 (initial)"]);
    assert!(new.has_synced());
}

#[tokio::test(start_paused = true)]
async fn a_consumer_of_keys_receives_the_changes_that_wait_for_the_old_listener() {
    let mut bench = Bench::new();
    let version = |object: &Object| Some(object.resource_version().to_string());
    let collects = || ListenerConfig { keys: Some(NamedKey::new(version)), ..ListenerConfig::default() };
    let mut old = bench.listen(collects());
    bench.put("moves");
    drain(&mut old);
    bench.put("moves");
    bench.put("moves");
    let mut new = bench.listen(collects());
    new.begin_after(&old);
    let expected = ["update moves@1→2", "update moves@2→3", "add moves@3 (initial)"];
    assert_eq!(drain(&mut new), expected);
    let mut without = bench.listener();
    bench.put("moves");
    without.begin_after(&new);
    assert_eq!(drain(&mut without), ["add moves@4 (initial)"]);
}

#[tokio::test(start_paused = true)]
async fn a_delete_that_a_long_snapshot_precedes_is_received_once_after_its_add() {
    let mut bench = Bench::new();
    let mut old = bench.listener();
    for name in ["gone", "x"] {
        bench.put(name);
    }
    bench.put(long("long"));
    drain(&mut old);
    bench.delete("gone");
    let mut new = loading_listener(&bench, BacklogAccount::default());
    bench.delete("x");
    new.begin_after(&old);
    bench.put("gone");
    assert_eq!(drain(&mut new), ["delete gone@4", "delete x@5", "add gone@6", "add long@3 (initial)"]);
}

#[tokio::test(start_paused = true)]
async fn an_object_that_left_the_filter_of_the_old_listener_only_is_not_deleted() {
    let mut bench = Bench::new();
    let account = BacklogAccount::default();
    let config = ListenerConfig { label_selector: "app".parse().unwrap(), ..ListenerConfig::default() };
    let mut old = bench.listen(config);
    bench.put(long("long"));
    bench.put(Draft::new("x").label("app", "web"));
    drain(&mut old);
    bench.put("x");
    let mut new = loading_listener(&bench, account.clone());
    new.begin_after(&old);
    assert!(account.held() > 0);
    assert_eq!(drain(&mut new), ["add long@1 (initial)", "add x@3 (initial)"]);
    assert_eq!(account.held(), 0);
    assert!(new.shared().state.lock().backlog.is_empty());
}

#[tokio::test(start_paused = true)]
async fn changes_that_merged_during_a_snapshot_stay_merged_and_count_for_sync_sy_03() {
    let mut bench = Bench::new();
    let mut listener = bench.listen(ListenerConfig { backlog_limit: 0, ..ListenerConfig::default() });
    let load = |listener: &Listener| {
        let shared = listener.shared();
        shared.load_snapshot(&mut shared.loader.lock(), Vec::new(), false);
    };
    listener.shared().start_snapshot();
    bench.relist(vec![object("a", 1), object("b", 1)]);
    bench.version = 1;
    bench.put("a");
    bench.delete("b");
    load(&listener);
    assert_eq!(listener.stats().merged, 2);
    for expected in ["add a@2 (initial)", "delete b@3"] {
        assert!(!listener.has_synced());
        let delivery = take(&mut listener).unwrap();
        assert_eq!((outline(&delivery.notification), delivery.is_merged), (expected.to_owned(), true));
        listener.finish(&delivery.key, Outcome::Done);
    }
    assert!(listener.has_synced());
}

// Namespaces.

#[tokio::test(start_paused = true)]
async fn visible_objects_arrive_as_adds_and_invisible_ones_are_forgotten() {
    let mut bench = Bench::new();
    for name in ["a/x", "b/x", "c/x"] {
        bench.put(name);
    }
    let only = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect::<Namespaces>();
    let mut listener = bench.listen(ListenerConfig { namespaces: only(&["a"]), ..ListenerConfig::default() });
    assert_eq!(drain(&mut listener), ["add a/x@1 (initial)"]);
    listener.set_namespaces(only(&["a", "b"]));
    assert_eq!(drain(&mut listener), ["add b/x@2 (initial)"]);
    listener.set_namespaces(Namespaces::All);
    assert_eq!(drain(&mut listener), ["add c/x@3 (initial)"]);
    assert!(listener.has_synced());

    bench.put("a/x");
    bench.put("b/x");
    bench.put("c/x");
    assert_eq!(peek(&mut listener), "update a/x@1→4");
    assert_eq!(fail(&mut listener), "update b/x@2→5 (attempt 0)");
    listener.set_namespaces(only(&["c"]));
    listener.finish(&key("a/x"), Outcome::Retry { after: Duration::ZERO });
    tokio::time::advance(second()).await;
    bench.delete("a/x");
    bench.put("b/x");
    assert_eq!(drain(&mut listener), ["update c/x@3→6"]);
    assert_eq!(listener.stats(), ListenerStats { delivered: 4, retried: 1, ..ListenerStats::default() });
    listener.set_namespaces(Namespaces::All);
    assert_eq!(drain(&mut listener), ["add b/x@8 (initial)"]);
}

#[tokio::test(start_paused = true)]
async fn a_listener_does_not_wait_for_initial_adds_that_became_invisible() {
    let mut bench = Bench::new();
    let mut listener = bench.listener();
    bench.relist(vec![object("a/x", 1), object("b/x", 1), object("c/x", 1)]);
    peek(&mut listener);
    park(&mut listener);
    listener.set_namespaces(Namespaces::one("a"));
    assert!(!listener.has_synced());
    assert_eq!(listener.parked(), []);
    listener.finish(&key("a/x"), Outcome::Done);
    assert!(listener.has_synced());
}

#[tokio::test(start_paused = true)]
async fn a_deferred_object_waits_for_take_deferred_and_delays_no_other() {
    let mut bench = Bench::new();
    let mut listener = bench.listener();
    bench.put("a");
    bench.put("b");
    let defer = |listener: &mut Listener| {
        let delivery = take(listener).unwrap();
        listener.finish(&delivery.key, Outcome::Defer);
    };
    defer(&mut listener);
    assert_eq!(drain(&mut listener), ["add b@2"]);
    bench.put("a");
    bench.put("a");
    assert_eq!((drain(&mut listener), listener.stats().deferred), (Vec::new(), 1));
    assert!(listener.take_deferred(&key("b")).is_none());
    let delivery = listener.take_deferred(&key("a")).unwrap();
    assert_eq!((outline(&delivery.notification).as_str(), delivery.attempts), ("add a@4", 0));
    assert!(listener.take_deferred(&key("a")).is_none(), "it is in flight");
    listener.finish(&key("a"), Outcome::Defer);
    assert_eq!(listener.release_deferred(), 1);
    assert_eq!(drain(&mut listener), ["add a@4"]);
    // A replay delivers the object with all others, and keeps a deferred delete.
    bench.put("a");
    defer(&mut listener);
    bench.delete("b");
    defer(&mut listener);
    listener.replay();
    assert_eq!(listener.stats().deferred, 0);
    assert_eq!(drain(&mut listener), ["delete b@6", "add a@5 (initial)"]);
}

use super::*;

#[tokio::test(start_paused = true)]
async fn promise_4_new_keys_go_before_initial_ones_and_these_do_not_starve() {
    let queue = PluginQueue::default();
    let key = |name: &str| WorkKey {
        kind: "it".into(),
        object: contract::ObjectKey { namespace: String::new(), name: name.to_owned() },
    };
    for n in 0..100 {
        queue.add_for(key(&format!("initial-{n}")), "1", true, None).unwrap();
    }
    // An event of a key that waits for its initial add moves it forward.
    queue.add_for(key("initial-50"), "2", false, None).unwrap();
    for n in 0..6 {
        queue.add_for(key(&format!("new-{n}")), "2", false, None).unwrap();
    }
    // A later replay does not move a key back.
    queue.add_for(key("new-5"), "2", true, None).unwrap();
    let mut order = Vec::new();
    for _ in 0..106 {
        let next = queue.next().await;
        order.push(next.name.clone());
        queue.finish(&next, Outcome::Done);
    }
    let first = ["initial-50", "new-0", "new-1", "new-2", "initial-0", "new-3", "new-4", "new-5"];
    assert_eq!(order[..8], first);
    assert_eq!(order[8..10], ["initial-1", "initial-2"]);
    order.sort();
    order.dedup();
    assert_eq!(order.len(), 106, "each key once");
    // While the plugin handles initial adds, the keys that it adds are initial ones.
    queue.call_begins(true);
    queue.add(key("a"), None).unwrap();
    queue.call_ends(true);
    queue.call_begins(false);
    queue.add(key("b"), None).unwrap();
    assert_eq!((queue.next().await.name.clone(), queue.next().await.name.clone()), ("b".into(), "a".into()));
}

#[tokio::test(start_paused = true)]
async fn promise_4_parked_keys_count_towards_the_bound() {
    let queue = PluginQueue::default();
    let key = |n: usize| WorkKey {
        kind: "it".into(),
        object: contract::ObjectKey { namespace: String::new(), name: n.to_string() },
    };
    for n in 0..LIMIT {
        queue.add(key(n), None).unwrap();
        let next = queue.next().await;
        queue.finish(&next, Outcome::Park);
    }
    assert!(matches!(queue.add(key(LIMIT), None), Err(contract::Error::Throttled(_))));
}

#[tokio::test(start_paused = true)]
async fn promise_4_a_plugin_cannot_fill_the_hosts_memory_with_keys() {
    let account = HostBytes::new(4 << 20);
    let queue = PluginQueue::new(&account, Arc::new(workqueue::NoMetrics));
    let key = |n: usize| WorkKey {
        kind: "k".repeat(300),
        object: contract::ObjectKey { namespace: String::new(), name: format!("{n:0340}") },
    };
    let delay = |n: usize| n.is_multiple_of(2).then_some(Duration::from_secs(1_000_000));
    let n_keys = (0..).take_while(|n| queue.add(key(*n), delay(*n)).is_ok()).count();
    let refused = queue.add(key(n_keys), None);
    assert!(matches!(refused, Err(contract::Error::Throttled(_))), "{refused:?}");
    assert!(n_keys > 4_000 && account.view().work_queue <= 4 << 20, "{n_keys} {:?}", account.view());
    // A key that the queue holds can be added again, and takes no more bytes.
    queue.add(key(0), None).unwrap();
    queue.add(key(1), None).unwrap();
    let before = account.view().work_queue;
    for _ in 0..1_000 {
        let next = queue.next().await;
        queue.add(next.to_contract(), Some(Duration::from_secs(5))).unwrap();
        queue.finish(&next, Outcome::Done);
    }
    assert_eq!(account.view().work_queue, before, "the keys are delayed, not gone");
    tokio::time::advance(Duration::from_secs(2_000_000)).await;
    for _ in 0..n_keys {
        let next = queue.next().await;
        queue.finish(&next, Outcome::Done);
    }
    assert_eq!(account.view().work_queue, 0);
    queue.add(key(n_keys), None).unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_key_that_the_plugin_adds_is_an_event_unless_it_handles_a_replay() {
    let queue = PluginQueue::default();
    let key = WorkKey {
        kind: "it".into(),
        object: contract::ObjectKey { namespace: String::new(), name: "a".into() },
    };
    queue.add(key.clone(), None).unwrap();
    let next = queue.next().await;
    queue.finish(&next, Outcome::Park);
    let parked = queue.version(&next);
    queue.call_begins(true);
    queue.add(key.clone(), None).unwrap();
    assert_eq!(queue.version(&queue.next().await), parked);
    queue.finish(&next, Outcome::Park);
    queue.call_begins(false);
    queue.add(key, None).unwrap();
    assert_ne!(queue.version(&queue.next().await), parked);
    queue.finish(&next, Outcome::Defer);
    assert_eq!(queue.stats(1).pending, 1);
    assert!(queue.take_deferred(&next) && !queue.take_deferred(&next));
    // Added while it is worked on, it stays charged, and waits for the end of the work.
    queue.add(next.to_contract(), None).unwrap();
    assert_eq!(queue.stats(1).pending, 0);
    queue.finish(&next, Outcome::Done);
    assert_eq!((queue.stats(1).pending, queue.n_held()), (1, 1));
    // A deferred key that waits again is not taken a second time.
    let next = queue.next().await;
    queue.finish(&next, Outcome::Defer);
    queue.add(next.to_contract(), None).unwrap();
    assert!(!queue.take_deferred(&next));
    let next = queue.next().await;
    queue.finish(&next, Outcome::Done);
    assert_eq!((queue.stats(1).pending, queue.n_held()), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn keys_that_wait_for_a_time_are_counted_apart() {
    let queue = PluginQueue::default();
    let key = |n: usize| WorkKey {
        kind: "it".into(),
        object: contract::ObjectKey { namespace: String::new(), name: n.to_string() },
    };
    let counts = || {
        let QueueStats { pending, ready, delayed, .. } = queue.stats(1);
        (pending, ready, delayed)
    };
    (0..3).for_each(|n| queue.add(key(n), None).unwrap());
    for _ in 0..2 {
        let next = queue.next().await;
        queue.finish(&next, Outcome::RequeueAfter(Duration::from_secs(600)));
    }
    assert_eq!(counts(), (3, 1, 2));
    let next = queue.next().await;
    queue.finish(&next, Outcome::Defer);
    assert_eq!(counts(), (3, 0, 3), "a key in crash back-off waits for its time too");
    tokio::time::advance(Duration::from_secs(600)).await;
    assert_eq!(counts(), (3, 2, 1));
}

#[tokio::test(start_paused = true)]
async fn the_oldest_key_is_the_one_that_has_been_ready_for_longest() {
    let queue = PluginQueue::default();
    let key = |name: &str| WorkKey {
        kind: "it".into(),
        object: contract::ObjectKey { namespace: String::new(), name: name.to_owned() },
    };
    let advance = |seconds: u64| tokio::time::advance(Duration::from_secs(seconds));
    assert_eq!(queue.stats(1).oldest_ms, 0);
    queue.add(key("delayed"), Some(Duration::from_secs(10))).unwrap();
    advance(9).await;
    assert_eq!((queue.stats(1).oldest_ms, queue.stats(1).delayed), (0, 1), "a key that waits for its time");
    advance(3).await;
    assert_eq!((queue.stats(1).oldest_ms, queue.stats(1).delayed), (2_000, 0), "it is due for 2 s");
    queue.add_for(key("initial"), "1", true, None).unwrap();
    advance(1).await;
    // Added again, a key keeps its age.
    queue.add(key("delayed"), None).unwrap();
    queue.add_for(key("initial"), "2", false, None).unwrap();
    assert_eq!(queue.stats(1).oldest_ms, 3_000);
    let first = queue.next().await;
    assert_eq!(
        (&*first.name, queue.stats(1).oldest_ms),
        ("delayed", 1_000),
        "a key in process does not wait"
    );
    // A key that is added while it is in process is not ready before its call ends.
    queue.add(key("delayed"), None).unwrap();
    let second = queue.next().await;
    advance(5).await;
    assert_eq!((queue.stats(1).ready, queue.stats(1).oldest_ms), (0, 0));
    queue.finish(&first, Outcome::Done);
    assert_eq!((queue.stats(1).ready, queue.stats(1).oldest_ms), (1, 5_000));
    queue.finish(&second, Outcome::Park);
    queue.take_ready();
    advance(60).await;
    assert_eq!(queue.stats(1).oldest_ms, 0, "a parked key does not wait");
}

#[tokio::test(start_paused = true)]
async fn the_version_of_a_key_is_the_number_of_events_before_it_was_taken() {
    let queue = PluginQueue::default();
    let key = WorkKey {
        kind: "it".into(),
        object: contract::ObjectKey { namespace: String::new(), name: "a".into() },
    };
    let add = |version: &str, is_initial: bool| {
        queue.add_for(key.clone(), version, is_initial, None).unwrap();
    };
    // Takes the key and parks it, and returns its version.
    let taken = async || {
        let next = queue.next().await;
        let version = queue.version(&next);
        queue.finish(&next, Outcome::Park);
        version
    };
    add("7", true);
    let next = queue.next().await;
    let first = queue.version(&next);
    queue.wake(&next, None).unwrap();
    assert_eq!(queue.version(&next), first, "the call does not know what came since it began");
    queue.finish(&next, Outcome::Park);
    let woken = taken().await;
    assert_ne!(woken, first);
    add("7", false);
    let deleted = taken().await;
    assert_ne!(deleted, woken, "a delete may have the object of the event before");
    add("7", true);
    assert_eq!(taken().await, deleted, "a replay");
    add("8", true);
    assert_ne!(taken().await, deleted, "a replay that shows news");
}

#[tokio::test(start_paused = true)]
async fn the_back_off_of_a_key_ends_when_an_event_has_it_called_before() {
    use futures::FutureExt as _;
    let queue = PluginQueue::default();
    let seconds = Duration::from_secs;
    let advance = |n: u64| tokio::time::advance(seconds(n));
    let tick = || WorkKey {
        kind: "tick".into(),
        object: contract::ObjectKey { namespace: String::new(), name: String::new() },
    };
    let fails_then = async |outcome: Outcome| {
        queue.add(tick(), None).unwrap();
        let key = queue.next().await;
        queue.finish(&key, Outcome::RetryAfter(seconds(3)));
        advance(2).await;
        queue.add(tick(), None).unwrap();
        assert_eq!(queue.next().await, key);
        queue.finish(&key, outcome);
        key
    };
    let key = fails_then(Outcome::Park).await;
    advance(60).await;
    assert_eq!((queue.stats(1).pending, queue.stats(1).parked), (0, 1));
    // The next event has it called as before.
    fails_then(Outcome::Done).await;
    assert_eq!((queue.stats(1).pending, queue.n_held()), (0, 0));
    fails_then(Outcome::Defer).await;
    advance(60).await;
    assert!(queue.next().now_or_never().is_none() && queue.take_deferred(&key));
    queue.finish(&key, Outcome::Done);
    // The next failure counts with its own back-off.
    fails_then(Outcome::RetryAfter(seconds(6))).await;
    advance(5).await;
    assert!(queue.next().now_or_never().is_none());
    advance(1).await;
    assert_eq!(queue.next().await, key);
    // An event during the call comes before the back-off too.
    queue.add(tick(), None).unwrap();
    queue.finish(&key, Outcome::RetryAfter(seconds(3)));
    assert_eq!(queue.next().await, key);
    queue.finish(&key, Outcome::Park);
    advance(60).await;
    assert!(queue.next().now_or_never().is_none());
    // The times that the plugin asked for stay.
    fails_then(Outcome::RequeueAfter(seconds(6))).await;
    queue.add(tick(), None).unwrap();
    queue.finish(&queue.next().await, Outcome::RetryAfter(seconds(3)));
    queue.add(tick(), Some(seconds(5))).unwrap();
    queue.add(tick(), None).unwrap();
    queue.finish(&queue.next().await, Outcome::Park);
    advance(4).await;
    assert!(queue.next().now_or_never().is_none());
    advance(1).await;
    assert_eq!(queue.next().await, key);
}

use std::time::Duration;

use oarlock_informer::object::Namespaces;
use oarlock_informer::testing::Draft;
use oarlock_plugin::contract::{Enqueue, FieldCondition, ObjectKey, Test, WorkKey};
use serde_json::json;

use super::rig::{Rig, done, loops, retry, trap};
use crate::access::Access;
use crate::dispatch::LaneConfig;

const CALL: Duration = Duration::from_secs(1);

async fn concurrent(pods: &[&str], concurrency: usize) -> Rig {
    let mut rig = Rig::new(pods).await;
    rig.stateless = true;
    rig.lanes = LaneConfig { concurrency, ..LaneConfig::single() };
    *rig.guests.takes.lock() = CALL;
    rig
}

/// Eight Pods.
const EIGHT: [&str; 8] = ["n/a", "n/b", "n/c", "n/d", "n/e", "n/f", "n/g", "n/h"];

#[tokio::test(start_paused = true)]
async fn a_stateless_plugin_has_as_many_calls_in_progress_as_its_concurrency_says() {
    let rig = concurrent(&EIGHT, 4).await;
    rig.serve(|_| done()).await;
    rig.until("synced 0").await;
    let calls = rig.calls();
    let at = |seconds: u64| calls.iter().filter(|it| it.after == CALL * seconds as u32).count();
    assert_eq!((at(0), at(1)), (4, 4), "{calls:#?}");
    assert_eq!(calls[8].after, CALL * 2, "on-synced comes after the answers to all initial adds");
    assert_eq!((rig.most_at_once(), rig.instances()), (4, 4));
}

#[tokio::test(start_paused = true)]
async fn promise_2_the_notifications_of_one_object_form_a_chain_in_several_instances() {
    let rig = concurrent(&EIGHT, 4).await;
    rig.serve(|_| done()).await;
    rig.until("synced 0").await;
    rig.api.put("n/a");
    rig.api.put("n/a");
    rig.api.put("n/b");
    rig.api.delete("n/a");
    let received = rig.until("delete a@13").await;
    let of_a: Vec<_> = received.into_iter().filter(|it| it.contains(" a@")).collect();
    assert_eq!(of_a, ["add a@2", "update a@2-10", "update a@10-11", "delete a@13"]);
}

#[tokio::test(start_paused = true)]
async fn keys_are_reconciled_side_by_side() {
    let mut rig = concurrent(&EIGHT, 8).await;
    rig.enqueue = Enqueue::Itself;
    rig.serve(|_| done()).await;
    rig.until_all("eight keys", |all| all.iter().filter(|it| it.text.starts_with("rec")).count() == 8).await;
    assert_eq!(rig.most_at_once(), 8);
    // A key that is added while it is reconciled is reconciled again, not at once.
    rig.api.put("n/a");
    rig.until_times("reconcile pods a", 2).await;
    rig.api.put("n/a");
    rig.until_times("reconcile pods a", 3).await;
}

#[tokio::test(start_paused = true)]
async fn promise_4_an_event_during_the_retry_of_a_lost_call_is_reconciled_after_it() {
    let mut rig = concurrent(&["n/a", "n/b"], 2).await;
    rig.enqueue = Enqueue::Itself;
    rig.serve(|call| if call.text == "reconcile pods a" && call.n_before == 0 { trap() } else { done() })
        .await;
    // The retry takes a second. The other lane has an instance, and is free.
    rig.until_times("reconcile pods a", 2).await;
    assert_eq!(rig.alive(), 2);
    rig.api.put("n/a");
    rig.until_times("reconcile pods a", 3).await;
    rig.pass(CALL * 2).await;
    assert_eq!((rig.queue.stats(1).pending, rig.queue.n_held()), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn an_event_during_the_last_try_of_a_lost_call_is_the_next_event_of_its_key() {
    let object = ObjectKey { namespace: "n".to_owned(), name: "a".to_owned() };
    let key = WorkKey { kind: "pods".to_owned(), object };
    for is_added in [false, true] {
        let mut rig = concurrent(&["n/a", "n/b"], 2).await;
        rig.enqueue = Enqueue::Itself;
        let (queue, key) = (rig.queue.clone(), key.clone());
        rig.serve(move |call| match call.text.as_str() {
            "reconcile pods a" if call.n_before < 3 => trap(),
            "reconcile pods b" if call.n_before > 0 && is_added => {
                queue.add(key.clone(), None).unwrap();
                done()
            }
            _ => done(),
        })
        .await;
        rig.until_times("reconcile pods a", 3).await;
        *rig.guests.takes.lock() = Duration::ZERO;
        let began = rig.now();
        rig.api.put(if is_added { "n/b" } else { "n/a" });
        rig.until_times("reconcile pods a", 4).await;
        let waited = rig.now() - began;
        assert!(waited < Duration::from_secs(60), "added {is_added}: {waited:?}, as the slow timer");
    }
}

#[tokio::test(start_paused = true)]
async fn promise_4_an_object_whose_call_is_lost_while_its_listener_loads_a_snapshot_gets_its_next_try() {
    let mut rig = concurrent(&[], 2).await;
    rig.retry.base = Duration::ZERO;
    let pointer = "/spec/on".to_owned();
    rig.conditions = vec![FieldCondition { pointer, test: Test::Exists }];
    rig.access.send_replace(Access::Allowed(Namespaces::Only(["n".to_owned()].into())));
    let on = |name: &str| Draft::new(name).field("spec", json!({"on": true}));
    rig.api.put(on("n/a"));
    rig.api.put(on("n/b"));
    // Each of them is a slice of the work.
    for n in 0..32 {
        rig.api.put(Draft::new(&format!("m/{n}")).annotation("text", &"x".repeat(1 << 20)));
    }
    rig.serve(|call| if call.text == "update a@2-36" && call.n_before == 0 { trap() } else { done() }).await;
    rig.until("synced 0").await;
    rig.pass(CALL * 2).await;
    rig.api.put(on("n/a"));
    rig.until("update a@2-36").await;
    rig.access.send_replace(Access::Allowed(Namespaces::All));
    while rig.status().subscriptions[0].namespaces.is_some() {
        tokio::task::yield_now().await;
    }
    // The dispatcher loads slice after slice, so the clock goes on by hand.
    tokio::time::advance(CALL).await;
    rig.until_times("update a@2-36", 2).await;
    assert_eq!((rig.instances(), rig.status().instances_lost), (3, 1));
}

#[tokio::test(start_paused = true)]
async fn promise_4_a_trap_costs_the_instance_of_one_lane() {
    let rig = concurrent(&["n/a", "n/b", "n/c"], 3).await;
    rig.serve(|call| if call.text == "add b@3" && call.n_before == 0 { trap() } else { done() }).await;
    rig.until("synced 0").await;
    let calls = rig.calls();
    let n_of = |text: &str| calls.iter().filter(|it| it.text == text).count();
    assert_eq!((n_of("add a@2"), n_of("add b@3"), n_of("add c@4")), (1, 2, 1));
    assert_eq!((rig.instances(), rig.alive(), rig.status().instances_lost), (4, 3, 1));
}

#[tokio::test(start_paused = true)]
async fn promise_4_a_concurrent_plugin_that_always_traps_gets_few_instances() {
    // So many that there are first losses all the time, which are not in crash back-off.
    let pods: Vec<_> = (0..500).map(|n| format!("n/{n}")).collect();
    let pods: Vec<_> = pods.iter().map(String::as_str).collect();
    let mut n_instances = Vec::new();
    for concurrency in [1, 8] {
        let rig = concurrent(&pods, concurrency).await;
        rig.serve(|_| trap()).await;
        rig.pass(Duration::from_secs(3600)).await;
        n_instances.push(rig.instances());
    }
    // The first eight traps come together; from then on two lanes are used.
    assert!(n_instances[1] <= 2 * n_instances[0] + 8, "{n_instances:?} instances in an hour");
}

#[tokio::test(start_paused = true)]
async fn promise_4_a_call_that_loops_after_a_trap_does_not_delay_other_objects() {
    let rig = concurrent(&["n/a"], 4).await;
    *rig.guests.takes.lock() = Duration::ZERO;
    rig.serve(|call| match &*call.text {
        "add a@2" if call.n_before == 0 => trap(),
        "add b@3" => loops(CALL),
        _ => done(),
    })
    .await;
    rig.until("add a@2").await;
    let began = rig.now();
    rig.api.put("n/b");
    rig.until("add b@3").await;
    rig.api.put("n/c");
    rig.until("add c@4").await;
    assert_eq!((rig.now() - began, rig.status().instances_lost), (Duration::ZERO, 1));
}

#[tokio::test(start_paused = true)]
async fn lanes_that_are_lost_together_are_one_restart_however_late_the_others_are_used() {
    let mut rig = concurrent(&EIGHT[..4], 4).await;
    rig.serve(|call| if call.text.starts_with("add") && call.n_before == 0 { trap() } else { done() }).await;
    rig.until("synced 0").await;
    assert_eq!((rig.status().instances_lost, rig.restarts().len()), (4, 1));
    rig.pass(Duration::from_secs(3_600)).await;
    let before = rig.instances();
    for pod in &EIGHT[..4] {
        rig.api.put(*pod);
    }
    rig.until("update d@5-9").await;
    assert!(rig.instances() > before, "lanes that were lost are used again");
    assert_eq!(rig.restarts(), [Duration::ZERO; 0]);
}

#[tokio::test(start_paused = true)]
async fn few_instances_are_made_under_little_load() {
    let rig = concurrent(&["n/a"], 16).await;
    rig.serve(|_| done()).await;
    rig.until("synced 0").await;
    rig.pass(CALL).await;
    for version in 3..13 {
        rig.api.put("n/a");
        rig.until(&format!("update a@{}-{version}", version - 1)).await;
        rig.pass(CALL).await;
    }
    assert_eq!(rig.instances(), 1);
}

#[tokio::test(start_paused = true)]
async fn an_idle_instance_is_dropped_and_made_again_at_the_next_event() {
    let mut rig = concurrent(&EIGHT, 4).await;
    rig.lanes.idle_after = Some(Duration::from_secs(60));
    rig.serve(|_| done()).await;
    rig.until("synced 0").await;
    assert_eq!(rig.alive(), 4);
    rig.pass(Duration::from_secs(58)).await;
    assert_eq!(rig.alive(), 4);
    rig.pass(Duration::from_secs(10)).await;
    assert_eq!(rig.alive(), 0);
    rig.api.put("n/a");
    rig.until("update a@2-10").await;
    assert_eq!((rig.alive(), rig.instances()), (1, 5));
    assert_eq!(rig.status().instances_lost, 0);
}

#[tokio::test(start_paused = true)]
async fn the_instance_of_a_plugin_with_state_is_never_dropped() {
    let rig = Rig::new(&["n/a"]).await;
    rig.serve(|_| done()).await;
    rig.until("synced 0").await;
    rig.pass(Duration::from_secs(100_000)).await;
    assert_eq!((rig.alive(), rig.instances()), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn an_instance_is_replaced_after_a_number_of_calls() {
    let mut rig = concurrent(&EIGHT, 1).await;
    rig.lanes.recycle_after_calls = Some(3);
    rig.serve(|_| done()).await;
    rig.until("synced 0").await;
    let instances: Vec<_> = rig.calls().iter().map(|it| it.instance).collect();
    assert_eq!(instances, [1, 1, 1, 2, 2, 2, 3, 3, 3]);
    assert_eq!(rig.status().instances_lost, 0);
}

#[tokio::test(start_paused = true)]
async fn an_instance_is_replaced_above_a_size() {
    let mut rig = concurrent(&["n/a", "n/b"], 1).await;
    rig.lanes.recycle_above_memory = Some(1 << 20);
    *rig.guests.memory_bytes.lock() = 1 << 20;
    rig.serve(|_| done()).await;
    rig.until("synced 0").await;
    assert_eq!(rig.instances(), 1);
    *rig.guests.memory_bytes.lock() = (1 << 20) + 1;
    rig.api.put("n/a");
    rig.until("update a@2-4").await;
    rig.pass(CALL * 2).await;
    assert_eq!(rig.alive(), 0);
}

#[tokio::test(start_paused = true)]
async fn promise_6_a_slow_call_delays_a_swap_for_its_own_object_only() {
    let mut rig = Rig::new(&["n/a", "n/b"]).await;
    rig.stateless = true;
    rig.serve(|_| done()).await;
    rig.until("synced 0").await;
    *rig.guests.takes.lock() = Duration::from_secs(100);
    rig.api.put("n/a");
    rig.until("update a@2-4").await;
    *rig.guests.takes.lock() = Duration::ZERO;
    rig.api.put("n/a");
    rig.api.put("n/b");
    let began = rig.now();
    rig.serve(|_| done()).await;
    rig.until("update b@3-6").await;
    assert_eq!(rig.now(), began, "another object does not wait for the slow call");
    rig.until("update a@4-5").await;
    assert_eq!(rig.now() - began, Duration::from_secs(100));
    let calls = rig.calls();
    assert_eq!(calls.iter().filter(|it| it.text == "update a@2-4").count(), 1, "it was answered");
    assert_eq!(calls.last().unwrap().instance, 2);
}

#[tokio::test(start_paused = true)]
async fn promise_6_a_new_version_waits_for_the_call_of_the_object_that_the_old_one_handles() {
    let mut rig = Rig::new(&["n/a", "n/b"]).await;
    rig.stateless = true;
    rig.serve(|call| if call.text.starts_with("delete") { retry() } else { done() }).await;
    rig.until("synced 0").await;
    *rig.guests.takes.lock() = Duration::from_secs(100);
    rig.api.delete("n/a");
    rig.until("delete a@4").await;
    *rig.guests.takes.lock() = Duration::ZERO;
    // The new version has a listener of its own.
    rig.selector = "!nothing";
    let began = rig.now();
    rig.serve(|_| done()).await;
    rig.until("add b@3").await;
    rig.pass(Duration::from_secs(50)).await;
    assert_eq!(rig.calls().iter().filter(|it| it.text == "delete a@4").count(), 1);
    rig.until_times("delete a@4", 2).await;
    assert_eq!(rig.now() - began, Duration::from_secs(100));
    let last = rig.calls().pop().unwrap();
    assert_eq!((last.text.as_str(), last.instance), ("delete a@4", 2));
}

/// Tokio's part of a task has at most 256 bytes. The next allocation of jemalloc has 2,560.
#[tokio::test(start_paused = true)]
async fn the_task_of_a_plugin_fits_an_allocation_of_2048_bytes() {
    let bytes = Rig::new(&[]).await.run_bytes;
    assert!(bytes <= 1_792, "{bytes}");
}

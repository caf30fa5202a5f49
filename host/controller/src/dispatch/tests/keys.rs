use std::time::Duration;

use oarlock_informer::testing::Draft;
use oarlock_plugin::contract::{Enqueue, OwnerKind, Scope};
use serde_json::json;

use super::rig::{Rig, done, retry, terminal, trap};
use crate::dispatch::call::Answer;

#[tokio::test(start_paused = true)]
async fn notifications_with_an_enqueue_rule_become_keys() {
    let mut rig = Rig::new(&["n/a"]).await;
    rig.enqueue = Enqueue::Itself;
    rig.serve(|_| done()).await;
    rig.until("reconcile pods a").await;
    rig.api.put("n/a");
    let received = rig.until_times("reconcile pods a", 2).await;
    assert!(received.iter().all(|it| !it.starts_with("add") && !it.starts_with("update")), "{received:?}");
}

#[tokio::test(start_paused = true)]
async fn a_change_of_owner_adds_the_keys_of_both_owners() {
    let mut rig = Rig::new(&[]).await;
    rig.enqueue = Enqueue::ControllerOwner(OwnerKind {
        group: "apps".to_owned(),
        kind: "ReplicaSet".to_owned(),
        scope: Scope::SameNamespace,
    });
    rig.serve(|_| done()).await;
    let owned_by = |name: &str| {
        let owner = json!([{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": name, "uid": "u", "controller": true}]);
        Draft::new("n/a").metadata("ownerReferences", owner)
    };
    rig.api.put(owned_by("one"));
    rig.until("reconcile ReplicaSet one").await;
    rig.api.put(owned_by("two"));
    rig.until("reconcile ReplicaSet two").await;
    rig.until_times("reconcile ReplicaSet one", 2).await;
}

#[tokio::test(start_paused = true)]
async fn a_key_that_fails_is_retried_with_growing_back_off_and_then_parked() {
    let mut rig = Rig::new(&["n/a", "n/b"]).await;
    rig.enqueue = Enqueue::Itself;
    rig.serve(|call| if call.text == "reconcile pods a" { retry() } else { done() }).await;
    rig.until_times("reconcile pods a", 6).await;
    rig.pass(Duration::from_secs(60)).await;
    assert_eq!(rig.status().work_queue.unwrap().parked, 1);
    let calls = rig.calls();
    let times: Vec<_> =
        calls.iter().filter(|it| it.text == "reconcile pods a").map(|it| it.after.as_millis()).collect();
    assert_eq!(times, [0, 200, 600, 1400, 3000, 6200]);
    // Its next event is another try.
    rig.api.put("n/a");
    rig.until_times("reconcile pods a", 7).await;
}

#[tokio::test(start_paused = true)]
async fn terminal_parks_a_key_until_the_slow_timer_fires() {
    let mut rig = Rig::new(&["n/a"]).await;
    rig.enqueue = Enqueue::Itself;
    rig.serve(
        |call| if call.text.starts_with("reconcile") && call.n_before == 0 { terminal() } else { done() },
    )
    .await;
    rig.until("reconcile pods a").await;
    rig.pass(Duration::from_secs(290)).await;
    assert_eq!(rig.status().work_queue.unwrap().parked, 1);
    rig.until_times("reconcile pods a", 2).await;
    rig.pass(Duration::from_secs(1)).await;
    assert_eq!(rig.status().work_queue.unwrap().parked, 0);
}

#[tokio::test(start_paused = true)]
async fn requeue_after_calls_the_plugin_again_after_that_time() {
    let mut rig = Rig::new(&["n/a"]).await;
    rig.enqueue = Enqueue::Itself;
    let later = Duration::from_secs(7);
    rig.serve(move |call| match call.n_before {
        0 if call.text.starts_with("reconcile") => Ok(Ok(Answer::RequeueAfter(later))),
        _ => done(),
    })
    .await;
    rig.until_times("reconcile pods a", 2).await;
    assert_eq!(rig.calls().last().unwrap().after, later);
}

#[tokio::test(start_paused = true)]
async fn promise_4_a_key_that_always_traps_is_parked_and_the_others_are_reconciled() {
    let mut rig = Rig::new(&["n/a", "n/b"]).await;
    rig.enqueue = Enqueue::Itself;
    rig.serve(|call| if call.text == "reconcile pods a" { trap() } else { done() }).await;
    rig.until_times("reconcile pods a", 3).await;
    rig.pass(Duration::from_secs(60)).await;
    assert_eq!(rig.status().work_queue.unwrap().parked, 1);
    assert_eq!(rig.calls().iter().filter(|it| it.text == "reconcile pods a").count(), 3);
    rig.api.put("n/c");
    rig.until("reconcile pods c").await;
}

#[tokio::test(start_paused = true)]
async fn a_key_parked_for_its_traps_is_reconciled_again_at_its_next_event() {
    let mut rig = Rig::new(&["n/a"]).await;
    rig.enqueue = Enqueue::Itself;
    rig.serve(|call| {
        let is_bad = call.text == "reconcile pods a" && call.n_before < 3;
        if is_bad { trap() } else { done() }
    })
    .await;
    rig.until_times("reconcile pods a", 3).await;
    rig.pass(Duration::from_secs(60)).await;
    assert_eq!(rig.status().work_queue.unwrap().parked, 1, "the replay for each fresh instance is no event");
    rig.api.put("n/a");
    let began = tokio::time::Instant::now();
    rig.until_times("reconcile pods a", 4).await;
    assert!(began.elapsed() < Duration::from_secs(1), "long before the slow timer");
    rig.pass(Duration::from_secs(1)).await;
    assert_eq!(rig.status().work_queue.unwrap().parked, 0);
}

use std::time::Duration;

use oarlock_informer::object::Namespaces;
use oarlock_informer::testing::Draft;
use oarlock_plugin::contract::{Enqueue, ObjectKey, OwnerKind, Scope, WorkKey};
use serde_json::json;

use super::rig::{Rig, done, retry, terminal, trap};
use crate::access::Access;
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

/// A task that wakes itself goes through the scheduler again, and wakes another worker.
#[tokio::test(start_paused = true)]
async fn a_change_that_becomes_a_key_does_not_wake_its_dispatcher_again() {
    let mut rig = Rig::new(&["n/a"]).await;
    rig.enqueue = Enqueue::Itself;
    rig.serve(|_| done()).await;
    rig.until("reconcile pods a").await;
    for n in 2..5 {
        // What follows a call takes less time than this.
        rig.pass(Duration::from_millis(100)).await;
        let before = rig.n_polls();
        rig.api.put("n/a");
        rig.until_times("reconcile pods a", n).await;
        rig.pass(Duration::from_millis(100)).await;
        // One for the change, and one after the guest, which lets other tasks run.
        assert_eq!(rig.n_polls() - before, 2);
    }
}

/// Adds the owners of Pods.
fn owners() -> Enqueue {
    Enqueue::ControllerOwner(OwnerKind {
        group: "apps".to_owned(),
        kind: "ReplicaSet".to_owned(),
        scope: Scope::SameNamespace,
    })
}

/// Returns a Pod of this owner.
fn owned_by(pod: &str, name: &str) -> Draft {
    let owner =
        json!({"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": name, "uid": "u", "controller": true});
    Draft::new(pod).metadata("ownerReferences", json!([owner]))
}

#[tokio::test(start_paused = true)]
async fn a_change_of_owner_adds_the_keys_of_both_owners() {
    let mut rig = Rig::new(&[]).await;
    rig.enqueue = owners();
    rig.serve(|_| done()).await;
    rig.api.put(owned_by("n/a", "one"));
    rig.until("reconcile ReplicaSet one").await;
    rig.api.put(owned_by("n/a", "two"));
    rig.until("reconcile ReplicaSet two").await;
    rig.until_times("reconcile ReplicaSet one", 2).await;
}

#[tokio::test(start_paused = true)]
async fn promise_3_notifications_that_merge_hide_no_key() {
    let mut rig = Rig::new(&[]).await;
    rig.enqueue = owners();
    rig.serve(|_| done()).await;
    *rig.guests.takes.lock() = Duration::from_secs(10);
    rig.api.put(owned_by("n/a", "first"));
    rig.until("reconcile ReplicaSet first").await;
    // During that call the backlog becomes full.
    for n in 0..5_000 {
        rig.api.put(format!("n/x{n}").as_str());
    }
    rig.api.put(owned_by("n/short", "of-a-short-life"));
    rig.api.delete("n/short");
    for owner in ["one", "two", "three"] {
        rig.api.put(owned_by("n/moves", owner));
    }
    for owner in ["of-a-short-life", "one", "two", "three"] {
        rig.until(&format!("reconcile ReplicaSet {owner}")).await;
    }
}

#[tokio::test(start_paused = true)]
async fn promise_3_the_keys_of_changes_that_wait_are_queued_when_a_version_gets_another_listener() {
    for stateless in [false, true] {
        let mut rig = Rig::new(&["n/blocks"]).await;
        rig.stateless = stateless;
        rig.enqueue = owners();
        rig.api.put(owned_by("n/moves", "old"));
        rig.serve(|_| done()).await;
        rig.until("reconcile ReplicaSet old").await;
        *rig.guests.takes.lock() = Duration::from_secs(10);
        rig.api.put(owned_by("n/blocks", "blocks"));
        rig.until("reconcile ReplicaSet blocks").await;
        // It waits for the end of that call.
        rig.api.put(owned_by("n/moves", "new"));
        rig.pass(Duration::from_secs(1)).await;
        rig.selector = "!none";
        rig.serve(|_| done()).await;
        rig.until("reconcile ReplicaSet new").await;
        rig.until_times("reconcile ReplicaSet old", 2).await;
    }
}

#[tokio::test(start_paused = true)]
async fn promise_3_the_keys_of_changes_that_wait_for_a_decision_about_access_outlive_a_swap() {
    let mut rig = Rig::new(&[]).await;
    rig.stateless = true;
    rig.enqueue = owners();
    rig.api.put(owned_by("n/moves", "old"));
    rig.serve(|_| done()).await;
    rig.until("reconcile ReplicaSet old").await;
    rig.access.send_replace(Access::Unknown("no answer".to_owned()));
    rig.pass(Duration::from_secs(1)).await;
    rig.api.put(owned_by("n/moves", "new"));
    rig.selector = "!none";
    rig.serve(|_| done()).await;
    rig.access.send_replace(Access::Allowed(Namespaces::All));
    rig.until("reconcile ReplicaSet new").await;
    rig.until_times("reconcile ReplicaSet old", 2).await;
}

#[tokio::test(start_paused = true)]
async fn promise_3_another_enqueue_rule_adds_the_keys_of_all_objects() {
    let mut rig = Rig::new(&[]).await;
    rig.stateless = true;
    rig.enqueue = Enqueue::Itself;
    rig.api.put(owned_by("n/a", "one"));
    rig.serve(|_| done()).await;
    rig.until("reconcile pods a").await;
    rig.enqueue = owners();
    rig.serve(|_| done()).await;
    rig.until("reconcile ReplicaSet one").await;
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

#[tokio::test(start_paused = true)]
async fn a_parked_key_is_reconciled_when_its_object_matches_no_more_or_is_missing_in_a_list() {
    for is_missing in [false, true] {
        let mut rig = Rig::new(&[]).await;
        rig.enqueue = Enqueue::Itself;
        rig.selector = "app=web";
        rig.api.put(Draft::new("n/a").label("app", "web"));
        rig.serve(|call| {
            let is_bad = call.text == "reconcile pods a" && call.n_before < 3;
            if is_bad { trap() } else { done() }
        })
        .await;
        rig.until_times("reconcile pods a", 3).await;
        rig.pass(Duration::from_secs(60)).await;
        assert_eq!(rig.status().work_queue.unwrap().parked, 1);
        // Either delete shows the state before, whose version the key has seen.
        if is_missing {
            rig.api.delete_unseen("n/a");
            rig.api.expire_history();
            rig.api.close_watches();
        } else {
            rig.api.put("n/a");
        }
        let began = rig.now();
        rig.until_times("reconcile pods a", 4).await;
        let waited = rig.now() - began;
        assert!(waited < Duration::from_secs(60), "missing {is_missing}: {waited:?}, as the slow timer");
    }
}

#[tokio::test(start_paused = true)]
async fn promise_4_a_key_that_its_own_calls_add_is_parked_for_its_traps_all_the_same() {
    for delay in [None, Some(Duration::from_secs(30))] {
        let mut rig = Rig::new(&["n/a"]).await;
        rig.enqueue = Enqueue::Itself;
        let queue = rig.queue.clone();
        rig.serve(move |call| {
            if call.text != "reconcile pods a" {
                return done();
            }
            let object = ObjectKey { namespace: "n".to_owned(), name: "a".to_owned() };
            queue.add(WorkKey { kind: "pods".to_owned(), object }, delay).unwrap();
            trap()
        })
        .await;
        rig.until_times("reconcile pods a", 3).await;
        rig.pass(Duration::from_secs(200)).await;
        assert_eq!(rig.calls().iter().filter(|it| it.text == "reconcile pods a").count(), 3);
        assert_eq!(rig.status().work_queue.unwrap().parked, 1);
    }
}

#[tokio::test(start_paused = true)]
async fn promise_4_a_resync_is_no_event_of_a_key_that_is_parked_for_its_traps() {
    let mut rig = Rig::new(&["n/a"]).await;
    rig.enqueue = Enqueue::Itself;
    rig.resync_seconds = 20;
    rig.serve(|call| if call.text == "reconcile pods a" { trap() } else { done() }).await;
    rig.until_times("reconcile pods a", 3).await;
    rig.pass(Duration::from_secs(200)).await;
    assert_eq!(rig.calls().iter().filter(|it| it.text == "reconcile pods a").count(), 3);
}

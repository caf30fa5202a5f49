use std::time::Duration;

use oarlock_informer::object::Namespaces;
use oarlock_plugin::contract::{Enqueue, Failure, RetryInfo};

use super::rig::{Rig, done, retry, trap};
use crate::access::Access;
use crate::dispatch::RetryPolicy;
use crate::generations::GenerationState;

#[tokio::test(start_paused = true)]
async fn promise_6_another_version_receives_everything_again() {
    let rig = Rig::new(&["n/a", "n/b"]).await;
    rig.serve(|_| done()).await;
    rig.until("synced 0").await;
    rig.serve(|_| done()).await;
    assert_eq!(
        rig.until_times("synced 0", 2).await,
        ["add a@2", "add b@3", "synced 0", "add a@2", "add b@3", "synced 0"]
    );
    assert_eq!(rig.status().generation, 2);
}

#[tokio::test(start_paused = true)]
async fn promise_6_a_stateless_version_takes_over_the_backlog() {
    let mut rig = Rig::new(&["n/a", "n/b"]).await;
    rig.stateless = true;
    rig.serve(|call| if call.text == "add b@3" { retry() } else { done() }).await;
    rig.until("add b@3").await;
    rig.serve(|_| done()).await;
    assert_eq!(rig.until("synced 0").await, ["add a@2", "add b@3", "add b@3", "synced 0"]);
}

#[tokio::test(start_paused = true)]
async fn promise_6_a_delete_that_the_old_version_did_not_handle_reaches_the_new_one() {
    let rig = Rig::new(&["n/a", "n/b"]).await;
    rig.serve(|call| if call.text.starts_with("delete") { retry() } else { done() }).await;
    rig.until("synced 0").await;
    rig.api.delete("n/a");
    rig.until("delete a@4").await;
    rig.serve(|_| done()).await;
    let received = rig.until_times("synced 0", 2).await;
    assert_eq!(received[4..], ["delete a@4", "add b@3", "synced 0"]);
}

#[tokio::test(start_paused = true)]
async fn promise_6_a_delete_reaches_the_new_version_when_the_subscription_changed() {
    let mut rig = Rig::new(&["n/a", "n/b"]).await;
    rig.serve(|call| if call.text.starts_with("delete") { retry() } else { done() }).await;
    rig.until("synced 0").await;
    rig.api.delete("n/a");
    rig.until("delete a@4").await;
    rig.selector = "!nothing";
    rig.serve(|_| done()).await;
    let received = rig.until_times("synced 0", 2).await;
    assert_eq!(received[4..], ["delete a@4", "add b@3", "synced 0"]);
}

#[tokio::test(start_paused = true)]
async fn promise_6_a_version_is_in_quarantine_when_another_one_serves_and_not_before() {
    let rig = Rig::new(&["n/a"]).await;
    rig.serve(|_| done()).await;
    rig.until("synced 0").await;
    rig.go_back_in_vain("it lost 3 instances").await;
    assert_eq!(rig.states()[0], GenerationState::Serving, "it goes on serving");
    rig.api.put("n/a");
    rig.until("update a@2-3").await;
    rig.go_back("it lost 3 instances").await;
    rig.until_times("synced 0", 2).await;
    assert_eq!(rig.states(), [GenerationState::Quarantined, GenerationState::Gone, GenerationState::Serving]);
}

#[tokio::test(start_paused = true)]
async fn a_version_swap_ends_a_crash_loop() {
    let rig = Rig::new(&["n/a"]).await;
    rig.serve(|_| super::rig::trap()).await;
    rig.pass(Duration::from_secs(600)).await;
    let before = rig.received().iter().filter(|it| *it == "synced 0").count();
    rig.serve(|_| done()).await;
    let received = rig.until_times("synced 0", before + 1).await;
    assert_eq!(received[received.len() - 2..], ["add a@2", "synced 0"]);
}

#[tokio::test(start_paused = true)]
async fn a_version_swap_ends_the_back_off_of_objects_and_keys() {
    let policy = RetryPolicy {
        base: Duration::from_secs(600),
        cap: Duration::from_secs(600),
        ..RetryPolicy::default()
    };
    for enqueue in [Enqueue::Nothing, Enqueue::Itself] {
        let mut rig = Rig::with(&["n/a"], policy.clone(), None).await;
        rig.stateless = true;
        rig.enqueue = enqueue;
        rig.serve(|call| if call.text == "synced 0" { done() } else { retry() }).await;
        rig.until("synced 0").await;
        rig.pass(Duration::from_secs(10)).await;
        let n_before = rig.calls().len();
        let began = rig.now();
        rig.serve(|_| done()).await;
        rig.pass(Duration::from_secs(10)).await;
        let calls = rig.calls();
        let again: Vec<_> = calls[n_before..].iter().map(|it| (it.instance, it.after - began)).collect();
        assert_eq!(again, [(2, Duration::ZERO)], "{calls:#?}");
    }
}

#[tokio::test(start_paused = true)]
async fn promise_6_two_instances_of_a_plugin_with_state_are_never_called_at_once() {
    let rig = Rig::new(&["n/a", "n/b"]).await;
    rig.serve(|_| done()).await;
    rig.until("synced 0").await;
    *rig.guests.takes.lock() = Duration::from_secs(100);
    rig.api.put("n/a");
    rig.until("update a@2-4").await;
    let began = rig.now();
    *rig.guests.takes.lock() = Duration::ZERO;
    // The second version is not called before it is replaced as well.
    rig.serve(|_| done()).await;
    rig.serve(|_| done()).await;
    rig.pass(Duration::from_secs(40)).await;
    // Meanwhile decisions about access apply.
    rig.access.send_replace(Access::Unknown("the API server is away".to_owned()));
    rig.pass(Duration::from_secs(1)).await;
    assert_eq!(rig.status().subscriptions[0].paused.as_deref(), Some("the API server is away"));
    rig.access.send_replace(Access::Allowed(Namespaces::All));
    rig.pass(Duration::from_secs(1)).await;
    assert_eq!(rig.status().subscriptions[0].paused, None);
    rig.until_times("synced 0", 2).await;
    let calls = rig.calls();
    assert_eq!(rig.most_at_once(), 1);
    assert_eq!(
        calls[4..].iter().map(|it| (&*it.text, it.instance)).collect::<Vec<_>>(),
        [("add a@4", 3), ("add b@3", 3), ("synced 0", 3),]
    );
    assert!(calls[4..].iter().all(|it| it.after == began + Duration::from_secs(100)), "{calls:#?}");
}

#[tokio::test(start_paused = true)]
async fn a_call_that_ends_after_a_swap_is_repeated_after_the_wait_that_it_asks_for() {
    for (asked, waits) in [(60_000, 60), (u32::MAX, 3_600)] {
        let mut rig = Rig::new(&["n/a"]).await;
        rig.stateless = true;
        rig.serve(move |call| match &*call.text {
            "update a@2-3" => {
                Ok(Err(Failure::RetryAfter(RetryInfo { message: "not yet".to_owned(), after_ms: asked })))
            }
            _ => done(),
        })
        .await;
        rig.until("synced 0").await;
        *rig.guests.takes.lock() = Duration::from_secs(10);
        rig.api.put("n/a");
        rig.until("update a@2-3").await;
        let began = rig.now();
        rig.serve(|_| done()).await;
        rig.pass(Duration::from_secs(4_000)).await;
        let last = rig.calls().pop().unwrap();
        assert_eq!((&*last.text, last.instance), ("update a@2-3", 2));
        assert_eq!(last.after - began, Duration::from_secs(10 + waits));
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_that_costs_an_instance_after_a_swap_is_reported_and_made_by_the_version_that_serves() {
    let mut rig = Rig::new(&["n/a"]).await;
    rig.stateless = true;
    rig.serve(|call| if call.text == "update a@2-3" { trap() } else { done() }).await;
    rig.until("synced 0").await;
    *rig.guests.takes.lock() = Duration::from_secs(10);
    rig.api.put("n/a");
    rig.until("update a@2-3").await;
    rig.serve(|_| done()).await;
    rig.pass(Duration::from_secs(60)).await;
    let last = rig.calls().pop().unwrap();
    assert_eq!((&*last.text, last.instance), ("update a@2-3", 2));
    assert_eq!(rig.losses(), ["on-update pods n/a: trap, next instance None"]);
}

use std::collections::BTreeSet;
use std::time::Duration;

use oarlock_informer::object::Namespaces;

use super::rig::{Rig, done};
use crate::access::{Access, Denial};
use crate::report;

#[tokio::test(start_paused = true)]
async fn promise_2_the_notifications_of_one_object_form_a_chain() {
    let rig = Rig::new(&["n/a"]).await;
    rig.serve(|_| done()).await;
    rig.until("synced 0").await;
    rig.api.put("n/a");
    rig.api.put("n/a");
    rig.api.delete("n/a");
    rig.api.put("n/a");
    assert_eq!(
        rig.until("add a@6").await,
        ["add a@2", "synced 0", "update a@2-3", "update a@3-4", "delete a@5", "add a@6"]
    );
}

#[tokio::test(start_paused = true)]
async fn on_synced_is_called_once_after_the_initial_adds() {
    let rig = Rig::new(&["n/a", "n/b"]).await;
    rig.serve(|_| done()).await;
    rig.until("synced 0").await;
    rig.api.put("n/c");
    assert_eq!(rig.until("add c@4").await, ["add a@2", "add b@3", "synced 0", "add c@4"]);
    assert!(rig.status().subscriptions[0].synced);
}

#[tokio::test(start_paused = true)]
async fn on_synced_is_called_when_there_are_no_objects() {
    let rig = Rig::new(&[]).await;
    rig.serve(|_| done()).await;
    assert_eq!(rig.until("synced 0").await, ["synced 0"]);
}

#[tokio::test(start_paused = true)]
async fn promise_5_a_revoked_right_closes_the_subscription() {
    let rig = Rig::new(&["n/a", "m/b"]).await;
    rig.serve(|_| done()).await;
    rig.until("synced 0").await;
    rig.access.send_replace(Access::Forbidden(Denial::NoAccount("ns/p".parse().unwrap())));
    rig.pass(Duration::from_secs(1)).await;
    rig.api.put("n/a");
    rig.api.delete("m/b");
    rig.pass(Duration::from_secs(1)).await;
    assert_eq!(rig.received().len(), 3);
    let status = rig.status();
    assert_eq!(status.subscriptions[0].forbidden.as_deref(), Some("the ServiceAccount ns/p does not exist"));
    assert_eq!(status.subscriptions[0].namespaces, Some(Vec::new()));

    rig.access.send_replace(Access::Allowed(Namespaces::Only(BTreeSet::from(["n".to_owned()]))));
    rig.api.put("m/b");
    rig.pass(Duration::from_secs(1)).await;
    assert_eq!(rig.received()[3..], ["add a@4"]);
    assert_eq!(rig.status().subscriptions[0].forbidden, None);
}

#[tokio::test(start_paused = true)]
async fn promise_5_notifications_wait_and_no_chain_breaks_while_access_is_unknown() {
    let rig = Rig::new(&["n/a"]).await;
    rig.serve(|_| done()).await;
    rig.until("synced 0").await;
    rig.access.send_replace(Access::Unknown("the API server is away".to_owned()));
    rig.pass(Duration::from_secs(1)).await;
    rig.api.put("n/a");
    rig.pass(Duration::from_secs(60)).await;
    assert_eq!(rig.received().len(), 2);
    // An operator who reads `forbidden` looks for a missing right.
    let shown = |rig: &Rig| {
        let of = rig.status().subscriptions[0].clone();
        (of.forbidden, of.paused)
    };
    assert_eq!(shown(&rig), (None, Some("the API server is away".to_owned())));
    rig.access.send_replace(Access::Allowed(Namespaces::All));
    assert_eq!(rig.until("update a@2-3").await.len(), 3);
    assert_eq!(shown(&rig), (None, None));
}

#[tokio::test(start_paused = true)]
async fn the_status_of_a_pause_has_the_latest_cause_and_each_cause_is_reported_once() {
    let mut rig = Rig::new(&["n/a"]).await;
    rig.serve(|_| done()).await;
    rig.until("synced 0").await;
    for cause in ["refused (os error 111)", "bad certificate", "refused (os error 112)", "bad certificate"] {
        rig.access.send_replace(Access::Unknown(cause.to_owned()));
        rig.pass(Duration::from_secs(1)).await;
        assert_eq!(rig.status().subscriptions[0].paused.as_deref(), Some(cause));
    }
    // The next pause reports its cause again.
    rig.access.send_replace(Access::Allowed(Namespaces::All));
    rig.pass(Duration::from_secs(1)).await;
    rig.access.send_replace(Access::Unknown("bad certificate".to_owned()));
    rig.pass(Duration::from_secs(1)).await;
    let paused = |line: report::Line| match line.event {
        report::HostEvent::SubscriptionPaused { message, .. } => Some(message),
        _ => None,
    };
    let paused: Vec<_> = rig.lines().filter_map(paused).collect();
    assert_eq!(paused, ["refused (os error 111)", "bad certificate", "bad certificate"]);
}

#[tokio::test(start_paused = true)]
async fn the_fault_hook_swallows_one_notification() {
    let rig = Rig::with(&["n/a", "n/b", "n/c"], Default::default(), Some(2)).await;
    rig.serve(|_| done()).await;
    assert_eq!(rig.until("synced 0").await, ["add a@2", "add c@4", "synced 0"]);
}

#[tokio::test(start_paused = true)]
async fn on_synced_does_not_wait_for_the_slow_timer_when_no_object_matches() {
    // The listener loads its snapshot in several slices, the last one while the dispatcher is idle.
    let names: Vec<_> = (0..100_000).map(|n| format!("n/p{n}")).collect();
    let mut rig = Rig::new(&names.iter().map(String::as_str).collect::<Vec<_>>()).await;
    rig.selector = "app=none";
    let served_at = rig.now();
    rig.serve(|_| done()).await;
    assert_eq!(rig.until("synced 0").await, ["synced 0"]);
    let waited = rig.now() - served_at;
    assert!(waited < rig.retry.parked_again, "{waited:?}");
}

use std::time::Duration;

use oarlock_plugin::contract::Enqueue;

use super::rig::{Rig, done, retry, terminal, trap};
use crate::dispatch::{HealthView, Redeliver, RedeliverError, Resumption};
use crate::status::Phase;

fn object(name: &str) -> Redeliver {
    Redeliver::Object { subscription: "pods".to_owned(), namespace: "n".to_owned(), name: name.to_owned() }
}

#[tokio::test(start_paused = true)]
async fn a_suspended_plugin_is_not_called_and_loses_nothing() {
    let rig = Rig::new(&["n/a"]).await;
    rig.serve(|_| done()).await;
    rig.until("synced 0").await;
    rig.commands.suspend().await;
    assert_eq!(rig.status().phase, Phase::Suspended);
    rig.api.put("n/a");
    rig.api.put("n/b");
    rig.pass(Duration::from_secs(600)).await;
    assert_eq!(rig.received(), ["add a@2", "synced 0"]);
    // Another version does not end it.
    rig.serve(|_| done()).await;
    rig.pass(Duration::from_secs(60)).await;
    assert_eq!((rig.received().len(), rig.status().phase), (2, Phase::Suspended));
    rig.commands.resume().await;
    assert_eq!(rig.status().phase, Phase::Serving);
    assert_eq!(rig.until_times("synced 0", 2).await[2..], ["add a@3", "add b@4", "synced 0"]);
}

#[tokio::test(start_paused = true)]
async fn a_plugin_can_be_suspended_before_its_first_version_serves() {
    let rig = Rig::new(&["n/a"]).await;
    rig.commands.suspend().await;
    rig.serve(|_| done()).await;
    rig.pass(Duration::from_secs(60)).await;
    assert_eq!(rig.received(), [""; 0]);
    rig.commands.resume().await;
    rig.until("synced 0").await;
}

#[tokio::test(start_paused = true)]
async fn a_plugin_that_its_definition_suspends_stays_suspended_when_an_operator_resumes_it() {
    let rig = Rig::new(&["n/a"]).await;
    rig.commands.declare(true).await;
    rig.commands.suspend().await;
    rig.serve(|_| done()).await;
    assert_eq!(rig.commands.resume().await, Resumption::StaysSuspended);
    // The operator's own suspension is over.
    assert_eq!(rig.commands.resume().await, Resumption::Refused);
    rig.pass(Duration::from_secs(60)).await;
    assert_eq!((rig.received().len(), rig.status().phase), (0, Phase::Suspended));
    rig.commands.declare(false).await;
    rig.until("synced 0").await;
    assert_eq!(rig.commands.resume().await, Resumption::Resumed);
}

#[tokio::test(start_paused = true)]
async fn a_suspension_and_its_end_are_reported_once_with_who_decided() {
    let mut rig = Rig::new(&["n/a"]).await;
    rig.commands.declare(false).await;
    rig.commands.suspend().await;
    rig.commands.suspend().await;
    rig.serve(|_| done()).await;
    rig.commands.declare(true).await;
    rig.commands.declare(true).await;
    rig.commands.resume().await;
    rig.commands.declare(false).await;
    rig.commands.resume().await;
    rig.commands.suspend().await;
    rig.commands.declare(true).await;
    rig.commands.declare(false).await;
    rig.commands.resume().await;
    insta::assert_snapshot!(rig.suspensions().join("\n"), @"
    info #0 suspended by `oarlock suspend`: it is not called until `oarlock resume`. Its notifications and keys wait
    info #1 suspended: its file or object has `suspend: true`. Its notifications and keys wait
    info #1 resumed by `oarlock resume`, and stays suspended: its file or object has `suspend: true`
    info #1 resumed: its file or object does not suspend it any more
    info #1 suspended by `oarlock suspend`: it is not called until `oarlock resume`. Its notifications and keys wait
    info #1 suspended: its file or object has `suspend: true`. Its notifications and keys wait
    info #1 its file or object does not suspend it any more. It stays suspended until `oarlock resume`
    info #1 resumed by `oarlock resume`
    ");
}

#[tokio::test(start_paused = true)]
async fn a_suspended_plugin_whose_instances_trap_at_their_start_gets_none_until_it_is_resumed() {
    let mut rig = Rig::new(&["n/a"]).await;
    rig.serve(|call| if call.text == "add a@2" && call.n_before == 0 { trap() } else { done() }).await;
    *rig.guests.cannot_start.lock() = true;
    rig.until("add a@2").await;
    rig.pass(Duration::from_secs(5)).await;
    assert!(rig.status().instances_lost > 3, "{:#?}", rig.status());
    rig.commands.suspend().await;
    let (instances, losses) = (rig.instances(), rig.health.follow().get().losses);
    rig.pass(Duration::from_secs(3_600)).await;
    assert_eq!((rig.instances(), rig.health.follow().get().losses), (instances, losses));
    assert_eq!((rig.status().phase, rig.received().len()), (Phase::Suspended, 1));
    *rig.guests.cannot_start.lock() = false;
    rig.commands.resume().await;
    rig.until("synced 0").await;
    assert_eq!((rig.instances(), rig.status().phase), (instances + 1, Phase::Serving));
    // The time of the suspension does not count.
    assert_eq!(rig.restarts(), [Duration::ZERO]);
}

#[tokio::test(start_paused = true)]
async fn what_is_parked_is_listed_with_reason_and_tries_and_can_be_redelivered() {
    let mut rig = Rig::new(&["n/a", "n/b", "n/c", "n/d"]).await;
    rig.stateless = true;
    rig.serve(|call| match call.text.as_str() {
        "add a@2" if call.n_before < 6 => retry(),
        "add b@3" if call.n_before == 0 => terminal(),
        "add c@4" if call.n_before < 3 => trap(),
        _ => done(),
    })
    .await;
    rig.until_times("add a@2", 6).await;
    rig.until_times("add c@4", 3).await;
    rig.pass(Duration::from_secs(30)).await;
    let mut parked = rig.commands.parked().await;
    parked.sort_by(|a, b| a.name.cmp(&b.name));
    let shown: Vec<_> =
        parked.iter().map(|it| (it.name.as_str(), it.reason, it.tries, it.last_error.as_str())).collect();
    assert_eq!(shown[0], ("a", "failed", 6, "not yet"));
    assert_eq!((shown[1].0, shown[1].1), ("b", "terminal"));
    assert_eq!((shown[2].0, shown[2].1, shown[2].2), ("c", "instance-lost", 3));
    assert_eq!(shown.len(), 3);

    assert_eq!(rig.commands.redeliver(object("d")).await, Err(RedeliverError::NotParked));
    let unknown = Redeliver::Object { subscription: "x".into(), namespace: "n".into(), name: "a".into() };
    assert_eq!(
        rig.commands.redeliver(unknown).await,
        Err(RedeliverError::UnknownSubscription(vec!["pods".to_owned()]))
    );
    let n_before = rig.received().iter().filter(|it| *it == "add a@2").count();
    assert_eq!(rig.commands.redeliver(object("a")).await, Ok(1));
    rig.until_times("add a@2", n_before + 1).await;
    assert_eq!(rig.commands.redeliver(Redeliver::All).await, Ok(2));
    rig.until_times("add c@4", 4).await;
    rig.pass(Duration::from_secs(30)).await;
    assert_eq!(rig.commands.parked().await, []);
    assert_eq!(rig.status().subscriptions[0].backlog.parked, 0);
    let health = rig.health.follow().get();
    assert_eq!(health, HealthView { losses: 3, missed_deadlines: 0 });
}

#[tokio::test(start_paused = true)]
async fn a_parked_key_can_be_redelivered() {
    let mut rig = Rig::new(&["n/a"]).await;
    rig.enqueue = Enqueue::Itself;
    rig.serve(
        |call| if call.text.starts_with("reconcile") && call.n_before == 0 { terminal() } else { done() },
    )
    .await;
    rig.until("reconcile pods a").await;
    rig.pass(Duration::from_secs(1)).await;
    let parked = rig.commands.parked().await;
    assert_eq!((parked[0].kind.as_deref(), parked[0].name.as_str(), parked[0].tries), (Some("pods"), "a", 1));
    let key = Redeliver::Key { kind: "pods".into(), namespace: "n".into(), name: "a".into() };
    assert_eq!(rig.commands.redeliver(key.clone()).await, Ok(1));
    rig.until_times("reconcile pods a", 2).await;
    rig.pass(Duration::from_secs(1)).await;
    assert_eq!(rig.commands.redeliver(key).await, Err(RedeliverError::NotParked));
}

#[tokio::test(start_paused = true)]
async fn what_is_parked_for_its_traps_is_still_listed_after_another_trap() {
    let rig = Rig::new(&["n/a", "n/b", "n/c"]).await;
    rig.serve(|call| match call.text.as_str() {
        "add b@3" => trap(),
        "update c@4-5" if call.n_before == 0 => trap(),
        _ => done(),
    })
    .await;
    rig.pass(Duration::from_secs(60)).await;
    let parked = rig.commands.parked().await;
    assert_eq!((parked.len(), parked[0].name.as_str(), parked[0].reason), (1, "b", "instance-lost"));
    *rig.guests.takes.lock() = Duration::from_secs(10);
    rig.api.put("n/c");
    // The replay for the next instance has shown the first object only.
    rig.until_times("add a@2", 5).await;
    assert_eq!(rig.status().subscriptions[0].backlog.parked, 0);
    assert_eq!(rig.commands.parked().await, [], "it is not parked at the moment");
    rig.pass(Duration::from_secs(60)).await;
    assert_eq!(rig.status().subscriptions[0].backlog.parked, 1);
    assert_eq!(rig.commands.parked().await, parked);
}

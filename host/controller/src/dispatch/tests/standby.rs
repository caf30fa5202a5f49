use std::time::Duration;

use oarlock_informer::object::Namespaces;
use oarlock_plugin::contract::Enqueue;

use super::rig::{DRAIN_TIMEOUT, Rig, done};
use crate::access::Access;
use crate::status::Phase;

const HOUR: Duration = Duration::from_secs(3_600);

#[tokio::test(start_paused = true)]
async fn a_standby_calls_nothing_and_keeps_no_backlog() {
    let rig = Rig::on_standby(&["n/a", "n/b"]).await;
    rig.serve(|_| done()).await;
    for _ in 0..10 {
        rig.api.put("n/a");
        rig.api.put("n/c");
        rig.api.delete("n/c");
        rig.pass(HOUR).await;
    }
    assert_eq!(rig.received(), [""; 0]);
    let status = rig.status();
    assert_eq!((status.phase, status.generation), (Phase::Standby, 1));
    let subscription = &status.subscriptions[0];
    assert_eq!((subscription.backlog.pending, subscription.backlog.merged), (0, 0));
    assert_eq!((subscription.namespaces.as_ref(), subscription.synced), (None, false), "it may see all");
}

#[tokio::test(start_paused = true)]
async fn a_standby_that_leads_delivers_the_current_cache_as_initial_adds() {
    let rig = Rig::on_standby(&["n/a", "n/b"]).await;
    rig.serve(|_| done()).await;
    rig.api.delete("n/a");
    rig.api.put("n/c");
    rig.api.put("n/c");
    rig.pass(HOUR).await;
    rig.leadership.lead();
    let received = rig.until("synced 0").await;
    assert_eq!(received, ["add b@3", "add c@6", "synced 0"]);
    assert_eq!(rig.status().phase, Phase::Serving);
    rig.api.put("n/b");
    rig.until("update b@3-7").await;
}

#[tokio::test(start_paused = true)]
async fn only_the_last_version_of_a_standby_is_ever_called() {
    for is_stateless in [false, true] {
        let mut rig = Rig::on_standby(&["n/a"]).await;
        rig.stateless = is_stateless;
        rig.serve(|_| panic!("the first version is not called")).await;
        rig.serve(|_| done()).await;
        assert_eq!(rig.status().phase, Phase::Standby);
        rig.leadership.lead();
        assert_eq!(rig.until("synced 0").await, ["add a@2", "synced 0"]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_plugin_whose_first_version_comes_after_the_standby_is_called_at_once() {
    let rig = Rig::on_standby(&["n/a"]).await;
    rig.leadership.lead();
    rig.serve(|_| done()).await;
    assert_eq!(rig.until("synced 0").await, ["add a@2", "synced 0"]);
}

#[tokio::test(start_paused = true)]
async fn keys_are_queued_when_the_host_leads_and_not_before() {
    let mut rig = Rig::on_standby(&["n/a"]).await;
    rig.enqueue = Enqueue::Itself;
    rig.serve(|_| done()).await;
    rig.pass(HOUR).await;
    assert_eq!(rig.queue.stats(1).pending, 0);
    rig.leadership.lead();
    rig.until("reconcile pods a").await;
}

#[tokio::test(start_paused = true)]
async fn a_right_that_is_lost_and_granted_on_standby_counts_when_the_host_leads() {
    let rig = Rig::on_standby(&["n/a", "m/b"]).await;
    rig.serve(|_| done()).await;
    rig.access.send_replace(Access::Unknown("not asked".to_owned()));
    rig.pass(HOUR).await;
    assert_eq!(rig.status().subscriptions[0].paused.as_deref(), Some("not asked"));
    rig.leadership.lead();
    rig.pass(HOUR).await;
    assert_eq!(rig.received(), [""; 0], "a decision that is unknown keeps the subscription closed");
    rig.access.send_replace(Access::Allowed(Namespaces::Only(["m".to_owned()].into())));
    rig.until("add b@3").await;
    rig.pass(HOUR).await;
    assert!(!rig.received().contains(&"add a@2".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn a_user_who_suspended_a_plugin_decides_also_after_the_standby() {
    let rig = Rig::on_standby(&["n/a"]).await;
    rig.serve(|_| done()).await;
    rig.commands.suspend().await;
    rig.leadership.lead();
    rig.pass(HOUR).await;
    assert_eq!((rig.received().len(), rig.status().phase), (0, Phase::Suspended));
    rig.commands.resume().await;
    rig.until("synced 0").await;
}

#[tokio::test(start_paused = true)]
async fn no_call_begins_after_the_end_of_leadership() {
    let rig = Rig::on_standby(&["n/a"]).await;
    rig.serve(|_| done()).await;
    rig.leadership.lead();
    let before = rig.until("synced 0").await;
    rig.leadership.end();
    rig.api.put("n/a");
    rig.api.put("n/b");
    rig.pass(HOUR).await;
    assert_eq!(rig.received(), before);
}

#[tokio::test(start_paused = true)]
async fn calls_in_progress_end_when_the_plugin_is_asked_to_stop_and_none_begins() {
    let rig = Rig::on_standby(&["n/a", "n/b"]).await;
    *rig.guests.takes.lock() = DRAIN_TIMEOUT / 2;
    rig.serve(|_| done()).await;
    rig.leadership.lead();
    rig.until("add a@2").await;
    let began = tokio::time::Instant::now();
    rig.end().await;
    assert!(began.elapsed() <= DRAIN_TIMEOUT / 2, "{:?}", began.elapsed());
    assert_eq!((rig.received(), rig.drain.n_dropped()), (vec!["add a@2".to_owned()], 0));
}

#[tokio::test(start_paused = true)]
async fn a_call_that_does_not_end_in_time_is_dropped_and_counted() {
    let rig = Rig::on_standby(&["n/a"]).await;
    *rig.guests.takes.lock() = HOUR;
    rig.serve(|_| done()).await;
    rig.leadership.lead();
    rig.until("add a@2").await;
    let began = tokio::time::Instant::now();
    rig.end().await;
    assert_eq!((began.elapsed(), rig.drain.n_dropped()), (DRAIN_TIMEOUT, 1));
}

#[tokio::test(start_paused = true)]
async fn a_host_that_lost_the_lease_waits_for_no_call() {
    let rig = Rig::on_standby(&["n/a"]).await;
    *rig.guests.takes.lock() = HOUR;
    rig.serve(|_| done()).await;
    rig.leadership.lead();
    rig.until("add a@2").await;
    rig.leadership.end();
    let began = tokio::time::Instant::now();
    rig.end().await;
    assert_eq!((began.elapsed(), rig.drain.n_dropped()), (Duration::ZERO, 1));
}

use std::time::Duration;

use oarlock_plugin::contract::{Failure, RetryInfo};

use super::rig::{Rig, done, retry, terminal};
use crate::dispatch::RetryPolicy;

#[tokio::test(start_paused = true)]
async fn an_object_that_fails_waits_alone_with_growing_back_off() {
    let rig = Rig::new(&["n/a", "n/b"]).await;
    rig.serve(|call| if call.text == "add a@2" && call.n_before < 3 { retry() } else { done() }).await;
    rig.until_times("add a@2", 4).await;
    let received = rig.until("synced 0").await;
    assert_eq!(received, ["add a@2", "add b@3", "add a@2", "add a@2", "add a@2", "synced 0"]);
    let calls = rig.calls();
    let times: Vec<_> =
        calls.iter().filter(|it| it.text == "add a@2").map(|it| it.after.as_millis()).collect();
    assert_eq!(times, [0, 200, 600, 1400]);
}

#[tokio::test(start_paused = true)]
async fn the_wait_that_a_plugin_asks_for_is_at_most_an_hour() {
    let rig = Rig::new(&["n/a"]).await;
    rig.serve(|call| match call.n_before {
        0 => Ok(Err(Failure::RetryAfter(RetryInfo { message: "not yet".to_owned(), after_ms: u32::MAX }))),
        _ => done(),
    })
    .await;
    rig.pass(Duration::from_secs(4_000)).await;
    let times: Vec<_> = rig.calls().into_iter().map(|it| (it.text, it.after.as_secs())).collect();
    assert_eq!(times[..2], [("add a@2".to_owned(), 0), ("add a@2".to_owned(), 3_600)]);
}

#[tokio::test(start_paused = true)]
async fn events_during_the_back_off_merge_into_the_retry() {
    let rig = Rig::new(&["n/a"]).await;
    rig.serve(|call| if call.text == "add a@2" { retry() } else { done() }).await;
    rig.until("add a@2").await;
    rig.api.put("n/a");
    rig.api.put("n/a");
    assert_eq!(rig.until("synced 0").await, ["add a@2", "add a@4", "synced 0"]);
}

#[tokio::test(start_paused = true)]
async fn an_object_that_failed_all_its_tries_is_parked_until_its_next_event() {
    let retry_policy = RetryPolicy { tries: 3, ..RetryPolicy::default() };
    let rig = Rig::with(&["n/a"], retry_policy, None).await;
    rig.serve(|call| if call.text == "add a@2" { retry() } else { done() }).await;
    assert_eq!(rig.until("synced 0").await, ["add a@2", "add a@2", "add a@2", "synced 0"]);
    let status = rig.status();
    assert_eq!(status.subscriptions[0].backlog.parked, 1);
    assert_eq!(status.last_error.unwrap().message, "on-add of pods n/a: not yet");
    rig.api.put("n/a");
    assert_eq!(rig.until("add a@3").await.len(), 5);
    assert_eq!(rig.status().subscriptions[0].backlog.parked, 0);
}

#[tokio::test(start_paused = true)]
async fn terminal_parks_an_object_at_once_and_the_slow_timer_retries_it() {
    let rig = Rig::new(&["n/a"]).await;
    rig.serve(|call| if call.n_before == 0 && call.text == "add a@2" { terminal() } else { done() }).await;
    assert_eq!(rig.until("synced 0").await, ["add a@2", "synced 0"]);
    rig.pass(Duration::from_secs(301)).await;
    assert_eq!(rig.received(), ["add a@2", "synced 0", "add a@2"]);
}

#[tokio::test(start_paused = true)]
async fn an_on_synced_that_fails_is_retried() {
    let rig = Rig::new(&["n/a"]).await;
    rig.serve(|call| if call.text == "synced 0" && call.n_before < 2 { retry() } else { done() }).await;
    rig.until_times("synced 0", 3).await;
    rig.pass(Duration::from_secs(60)).await;
    assert_eq!(rig.received(), ["add a@2", "synced 0", "synced 0", "synced 0"]);
}

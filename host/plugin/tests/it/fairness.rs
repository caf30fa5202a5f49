//! A guest that computes without end does not block other tasks, even on a single thread.

use std::time::Duration;

use oarlock_plugin::{CallError, Limits};
use serde_json::json;

use super::support::{Add as _, Host, add, deadline};

#[tokio::test]
async fn other_instances_are_called_while_one_loops() {
    let looping = Host::with("loops", deadline(Duration::from_secs(600)), json!({})).await;
    let mut looping = looping.instance().await.unwrap();
    let traps = Host::new("traps").await;
    let mut other = traps.instance().await.unwrap();
    let (event, object) = add("default", "any");
    // Both tasks run on one thread. The loop has no await points except those of the epochs.
    let mut tasks = tokio::task::JoinSet::new();
    let loop_task = tasks.spawn(async move {
        let _ = looping.on_add(&event.borrowed().argument(), object).await;
        "the loop"
    });
    tasks.spawn(async move {
        for _ in 0..100 {
            other.add("default", "any").await.unwrap().unwrap();
            tokio::task::yield_now().await;
        }
        "the other"
    });
    assert_eq!(tasks.join_next().await.unwrap().unwrap(), "the other");
    loop_task.abort();
    assert!(tasks.join_next().await.unwrap().unwrap_err().is_cancelled());
}

#[tokio::test]
async fn timers_fire_while_an_instance_loops() {
    let looping = Host::with("loops", deadline(Duration::from_secs(600)), json!({})).await;
    let mut looping = looping.instance().await.unwrap();
    tokio::select! {
        _ = looping.add("default", "any") => panic!("a loop does not end"),
        () = tokio::time::sleep(Duration::from_millis(20)) => {}
    }
    // The call was dropped before its end, so the instance cannot be called again.
    assert!(!looping.is_alive());
    assert_eq!(looping.add("default", "busy").await.unwrap_err(), CallError::Dead);
}

#[tokio::test]
async fn a_long_call_within_the_deadline_is_not_interrupted() {
    let host = Host::with("loops", Limits::default(), json!({})).await;
    let mut instance = host.instance().await.unwrap();
    // The namespace is the number of milliseconds: many time slices.
    instance.add("30", "busy").await.unwrap().unwrap();
    instance.add("30", "busy").await.unwrap().unwrap();
}

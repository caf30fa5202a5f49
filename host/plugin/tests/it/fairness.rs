//! A guest that computes without end does not hold up the others, even on a single thread.

use std::time::Duration;

use oarlock_plugin::{CallError, Limits};
use serde_json::json;

use super::support::{Add as _, Host, add, deadline};

#[tokio::test]
async fn others_are_called_while_one_loops() {
    let looping = Host::with("loops", deadline(Duration::from_secs(600)), json!({})).await;
    let mut looping = looping.instance().await.unwrap();
    let traps = Host::new("traps").await;
    let mut other = traps.instance().await.unwrap();
    let (event, object) = add("default", "any");
    // Own tasks of one thread: the loop's has no await point but those that the epochs put into it.
    let mut tasks = tokio::task::JoinSet::new();
    let loop_task = tasks.spawn(async move {
        let _ = looping.on_add(&event, object).await;
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
async fn timers_fire_while_one_loops() {
    let looping = Host::with("loops", deadline(Duration::from_secs(600)), json!({})).await;
    let mut looping = looping.instance().await.unwrap();
    tokio::select! {
        _ = looping.add("default", "any") => panic!("a loop does not end"),
        () = tokio::time::sleep(Duration::from_millis(20)) => {}
    }
    // Its call was dropped in the middle: nothing can be called any more.
    assert!(!looping.is_alive());
    assert_eq!(looping.add("default", "busy").await.unwrap_err(), CallError::Dead);
}

#[tokio::test]
async fn long_work_within_the_deadline_is_not_cut() {
    let host = Host::with("loops", Limits::default(), json!({})).await;
    let mut instance = host.instance().await.unwrap();
    // The namespace says for how many milliseconds: many time slices.
    instance.add("30", "busy").await.unwrap().unwrap();
    instance.add("30", "busy").await.unwrap().unwrap();
}

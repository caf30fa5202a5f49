//! A plugin with several instances.

use std::time::Duration;

use oarlock_dev_cluster::faults::{Action, Fault, Match};
use serde_json::{Value, json};

use crate::rig::{Rig, until_ok};

/// Creates 20 ConfigMaps, loads a plugin that creates a copy of each, and waits until so many of its writes
/// are in progress at once.
async fn writes_in_flight(concurrency: u32, expected: u32) {
    let rig = Rig::start().await;
    for n in 0..20 {
        rig.create(&format!("object-{n}")).await;
    }
    // No write is answered while the test runs.
    let creates =
        Match { resource: Some("configmaps".into()), verbs: vec!["create".into()], ..Match::default() };
    let slow = Fault::new(creates, Action::SlowBody { pause: Duration::from_secs(600) });
    let slow = rig.cluster.faults().add(slow);
    let limits = json!({"callDeadline": "10m", "logLinesPerSecond": 100_000});
    rig.plugin_with("writes", "writes", json!({"concurrency": concurrency, "limits": limits}));
    rig.serves("writes", 1).await;
    // A request that lasts too long fails, and ends its call.
    let is_end = |line: &&Value| {
        line["event"] == "delivered" && line["name"].as_str().is_some_and(|it| it.starts_with("object-"))
    };
    let n_ended = || rig.lines().iter().filter(is_end).count();
    let in_flight = || match (rig.cluster.faults().matched(slow), n_ended()) {
        (n, n_ended) if n as usize == expected as usize + n_ended => Ok(()),
        other => Err(other),
    };
    until_ok("writes in progress", async || in_flight()).await;
    rig.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stateless_plugin_has_as_many_writes_in_flight_as_its_concurrency_says() {
    writes_in_flight(16, 16).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plugin_has_one_write_in_flight_by_default() {
    writes_in_flight(1, 1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn several_instances_copy_each_object_once() {
    let rig = Rig::start().await;
    let instances = json!({"recycleAfterCalls": 3});
    rig.plugin_with("writes", "writes", json!({"concurrency": 8, "instances": instances}));
    rig.serves("writes", 1).await;
    for n in 0..40 {
        rig.create(&format!("object-{n}")).await;
    }
    let copies = async || {
        let all = rig.config_maps().list(&Default::default()).await.unwrap();
        let names = all.items.into_iter().filter_map(|it| it.metadata.name);
        match names.filter(|name| name.starts_with("copy-of-")).count() {
            40 => Ok(()),
            n => Err(n),
        }
    };
    until_ok("40 copies", copies).await;
    let lost = rig.lines().into_iter().find(|line| line["event"] == "instance-lost");
    assert_eq!(lost, None, "recycling loses no instance");
    rig.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn settings_for_stateless_plugins_are_refused_for_a_plugin_with_state() {
    let rig = Rig::start().await;
    rig.plugin_with("traps", "traps", json!({"concurrency": 2}));
    let line = rig.event("traps", "plugin-refused").await;
    let message = line["message"].as_str().unwrap();
    assert!(message.contains("`concurrency`") && message.contains("stateless"), "{line}");
    rig.plugin_with("traps", "traps", json!({"instances": {"recycleAfterCalls": 5}}));
    rig.line(|line| {
        line["event"] == "plugin-refused"
            && line["message"].as_str().is_some_and(|it| it.contains("`instances.recycleAfterCalls`"))
    })
    .await;
    rig.plugin_with("traps", "traps", json!({"concurrency": 1}));
    rig.event("traps", "plugin-loaded").await;
    rig.end().await;
}

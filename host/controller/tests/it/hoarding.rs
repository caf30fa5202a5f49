//! A plugin that uses every resource of the host up to its limits, and receives an error beyond them.

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::PostParams;
use serde_json::{Value, json};

use crate::rig::Rig;

/// Creates a ConfigMap of this name with this value, and returns what the guest logs about it.
async fn hoard(rig: &Rig, name: &str, value: &str) -> String {
    put(rig, name, value).await;
    let about = format!("{name}: ");
    let is_it = |line: &Value| line["message"].as_str().is_some_and(|it| it.starts_with(&about));
    let line = rig.line(|line| line["event"] == "guest-log" && is_it(line)).await;
    line["message"].as_str().unwrap().to_owned()
}

async fn put(rig: &Rig, name: &str, value: &str) {
    let object = json!({"metadata": {"name": name, "labels": {"app": "hello"}}, "data": {"value": value}});
    let object: ConfigMap = serde_json::from_value(object).unwrap();
    rig.config_maps().create(&PostParams::default(), &object).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn promise_4_a_plugin_that_uses_all_it_can_get_is_stopped_at_its_limits() {
    let rig = Rig::start().await;
    rig.plugin("hoards", "hoards");
    rig.plugin("hello", "hello-rust");
    rig.serves("hoards", 1).await;
    rig.serves("hello", 1).await;

    let large = "x".repeat(900 << 10);
    for n in 0..40 {
        put(&rig, &format!("large-{n:02}"), &large).await;
    }
    put(&rig, "long", &"x".repeat(4_000)).await;
    let line = hoard(&rig, "list", "").await;
    let pages: usize = line.split(' ').rev().nth(1).unwrap().parse().unwrap();
    assert!(line.starts_with("list: 4") && pages >= 3, "{line}");

    let line = hoard(&rig, "keys", "").await;
    assert!(line.contains(" keys, then Error::Throttled(") && line.contains("exceed the"), "{line}");
    // Its queue is full, which does not block the calls that would empty it.
    assert_eq!(hoard(&rig, "waits", "").await, "waits: foreign invalid, own seen");
    // The other plugin has an account of its own, and continues.
    rig.create("greeted").await;
    rig.line(|line| line["event"] == "delivered" && line["plugin"] == "hello" && line["name"] == "greeted")
        .await;

    let line = hoard(&rig, "fields", &large).await;
    assert!(line.contains("LimitExceeded"), "{line}");
    let line = hoard(&rig, "large-event", "").await;
    assert!(line.contains("Invalid"), "{line}");
    rig.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn promise_4_a_plugin_that_records_too_many_events_is_throttled() {
    let rig = Rig::start().await;
    rig.plugin("hoards", "hoards");
    rig.serves("hoards", 1).await;
    let line = hoard(&rig, "events", "").await;
    assert!(line.contains(" events, then Error::Throttled("), "{line}");
    rig.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn promise_5_a_plugin_can_wait_for_its_own_writes_and_for_no_others() {
    let rig = Rig::start().await;
    rig.plugin("hoards", "hoards");
    rig.serves("hoards", 1).await;
    assert_eq!(hoard(&rig, "waits", "").await, "waits: foreign invalid, own seen");
    put(&rig, "long", &"x".repeat(4_000)).await;
    assert_eq!(hoard(&rig, "index", "").await, "index: Ok(1) found, among the values: Ok(true)");
    rig.end().await;
}

use serde_json::json;

use crate::received;
use crate::rig::Rig;

#[tokio::test(flavor = "multi_thread")]
async fn promise_4_a_plugin_that_loops_delays_no_other_plugin() {
    let rig = Rig::start().await;
    rig.plugin_with("loops", "loops", json!({"limits": {"callDeadline": "200ms"}}));
    rig.plugin("hello", "hello-rust");
    rig.serves("loops", 1).await;
    rig.serves("hello", 1).await;
    for n in 0..20 {
        rig.create(&format!("o{n}")).await;
    }
    received::until_current(&rig, "hello", 1).await;
    // On a slow machine another call may be late as well.
    let lost = rig.line(|line| line["event"] == "instance-lost" && line["function"] == "on-add").await;
    assert_eq!((lost["plugin"].as_str(), lost["reason"].as_str()), (Some("loops"), Some("deadline")));
    rig.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn promise_4_an_object_that_traps_is_parked_and_the_others_are_served() {
    let rig = Rig::start().await;
    rig.create("before").await;
    rig.create("panic").await;
    rig.plugin("traps", "traps");
    rig.line(|line| line["event"] == "delivered" && line["name"] == "panic" && line["outcome"] == "parked")
        .await;
    rig.event("traps", "subscription-synced").await;
    rig.create("after").await;
    rig.line(|line| line["event"] == "delivered" && line["name"] == "after" && line["outcome"] == "done")
        .await;
    let lost = rig.lines().iter().filter(|line| line["event"] == "instance-lost").count();
    assert_eq!(lost, 3);
    rig.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn promise_4_healthy_objects_are_served_beside_an_object_that_traps() {
    let rig = Rig::start().await;
    for n in 0..3 {
        rig.create(&format!("before-{n}")).await;
    }
    rig.plugin("traps", "traps");
    rig.serves("traps", 1).await;
    rig.create("panic").await;
    for n in 0..10 {
        // Each change of the object is another try.
        rig.change("panic", &n.to_string()).await;
        let name = format!("healthy-{n}");
        rig.create(&name).await;
        rig.line(|line| {
            line["event"] == "delivered" && line["name"] == name.as_str() && line["outcome"] == "done"
        })
        .await;
    }
    // One line reports the cause, the object, the restart and the next try.
    let lost = rig.event("traps", "instance-lost").await;
    assert_eq!(lost["about"], "configmaps default/panic");
    assert_eq!((&lost["tries"], &lost["restart-after-ms"]), (&json!(1), &json!(0)));
    assert!(lost["after-ms"].is_u64(), "{lost}");
    rig.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plugin_file_sets_the_numbers_of_tries() {
    let rig = Rig::start().await;
    rig.create("panic").await;
    rig.create("retry").await;
    rig.plugin_with("traps", "traps", json!({"limits": {"lossTries": 1, "tries": 2}}));
    let parked = |name: &'static str| {
        move |line: &serde_json::Value| {
            line["event"] == "delivered" && line["name"] == name && line["outcome"] == "parked"
        }
    };
    rig.line(parked("panic")).await;
    assert_eq!(rig.line(parked("retry")).await["attempts"], 1);
    rig.event("traps", "subscription-synced").await;
    assert_eq!(rig.lines().iter().filter(|line| line["event"] == "instance-lost").count(), 1);
    rig.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn terminal_parks_at_once_and_retry_parks_after_all_tries() {
    let rig = Rig::start().await;
    rig.plugin("traps", "traps");
    rig.serves("traps", 1).await;
    rig.create("terminal").await;
    rig.create("retry").await;
    let delivered = |name: &'static str, outcome: &'static str| {
        move |line: &serde_json::Value| {
            line["event"] == "delivered" && line["name"] == name && line["outcome"] == outcome
        }
    };
    let terminal = rig.line(delivered("terminal", "parked")).await;
    assert_eq!((&terminal["attempts"], &terminal["message"]), (&json!(0), &json!("as asked")));
    rig.line(delivered("retry", "retry")).await;
    let parked = rig.line(delivered("retry", "parked")).await;
    assert_eq!(parked["attempts"], 5);
    assert_eq!(rig.lines().iter().filter(|line| line["event"] == "instance-lost").count(), 0);
    rig.end().await;
}

/// One plugin has 32 subscriptions with 64 fields, 16 conditions and a long selector each; the other one
/// receives every change, in order.
#[tokio::test(flavor = "multi_thread")]
async fn promise_4_a_plugin_with_the_largest_declaration_delays_no_other_plugin() {
    for nested in [false, true] {
        let rig = Rig::start().await;
        rig.plugin_with("declares-the-most", "declares-the-most", json!({"config": {"nested": nested}}));
        rig.plugin("hello", "hello-rust");
        rig.serves("declares-the-most", 1).await;
        rig.serves("hello", 1).await;
        let keys = (0..2_048).map(|n| (format!("key-{n}"), json!("x".repeat(350))));
        let mut data: serde_json::Map<_, _> = keys.collect();
        data.insert("large".to_owned(), json!("y".repeat(64 << 10)));
        rig.create("large").await;
        rig.patch("large", &json!({"data": data})).await;
        for n in 0..5 {
            rig.change("large", &format!("greeting {n}")).await;
            rig.create(&format!("small-{n}")).await;
        }
        received::until_current(&rig, "hello", 1).await;
        let types = received::types_of(&rig, "hello", "large");
        assert_eq!(types.len(), 7, "an add and an update for each change: {types:?}");
        rig.end().await;
    }
}

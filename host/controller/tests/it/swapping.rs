use serde_json::json;

use crate::received;
use crate::rig::{Rig, guest_path};

#[tokio::test(flavor = "multi_thread")]
async fn promise_6_a_plugin_is_swapped_while_events_flow() {
    let rig = Rig::start().await;
    rig.plugin("hello", "hello-rust");
    rig.serves("hello", 1).await;
    for n in 0..60 {
        rig.create(&format!("o{n}")).await;
        if n % 3 == 0 {
            rig.change(&format!("o{n}"), "again").await;
        }
        if n % 5 == 0 {
            rig.delete(&format!("o{n}")).await;
        }
        if n == 30 {
            rig.component("hello", &std::fs::read(guest_path("hello-c")).unwrap());
        }
    }
    let loaded = rig.serves("hello", 2).await;
    assert_eq!(loaded["mode"], "replay");
    received::until_current(&rig, "hello", 2).await;
    rig.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn promise_6_a_plugin_is_loaded_reconfigured_unloaded_and_loaded_again() {
    let rig = Rig::start().await;
    rig.create("a").await;
    rig.plugin("hello", "hello-rust");
    rig.serves("hello", 1).await;
    // Another configuration is another generation.
    rig.plugin_with("hello", "hello-rust", json!({"config": {"labelSelector": "app=other"}}));
    rig.serves("hello", 2).await;
    rig.remove("hello");
    rig.event("hello", "plugin-unloaded").await;
    rig.plugin("hello", "hello-rust");
    rig.until(|lines| lines.iter().filter(|it| it["event"] == "plugin-loaded").count() == 3).await;
    rig.end().await;
}

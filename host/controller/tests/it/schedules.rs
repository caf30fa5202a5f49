//! A plugin with a schedule.

use serde_json::json;

use crate::rig::Rig;

#[tokio::test(flavor = "multi_thread")]
async fn a_schedule_adds_its_key_again_and_again() {
    let rig = Rig::start().await;
    rig.plugin_with("reconciles", "reconciles", json!({"config": {"everySeconds": 1}}));
    rig.serves("reconciles", 1).await;
    let ticks = |lines: &[serde_json::Value]| {
        lines.iter().filter(|line| line["event"] == "reconciled" && line["kind"] == "tick").count()
    };
    rig.until(move |lines| ticks(lines) >= 2).await;
    rig.plugin_with("reconciles", "reconciles", json!({"config": {"everySeconds": 0}}));
    let refused = rig.event("reconciles", "plugin-refused").await;
    assert!(refused["message"].as_str().unwrap().contains("not 1 to 31536000"), "{refused}");
    rig.end().await;
}

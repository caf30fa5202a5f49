use std::fs;

use serde_json::Value;

use crate::rig::{Rig, guest_path};

/// Returns whether a line is about a file of this name. The host starts with an empty folder, and reports
/// that, too.
fn is_about(line: &Value, event: &str, file: &str) -> bool {
    line["event"] == event && line["file"].as_str().is_some_and(|it| it.ends_with(file))
}

fn refusals(lines: &[Value]) -> Vec<&Value> {
    let is_refusal = |line: &&Value| {
        is_about(line, "plugin-refused", ".yaml") || is_about(line, "plugin-refused", ".wasm")
    };
    lines.iter().filter(is_refusal).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_half_written_component_is_not_refused() {
    let rig = Rig::start().await;
    rig.plugin("hello", "hello-rust");
    rig.serves("hello", 1).await;
    let good = fs::read(guest_path("hello-c")).unwrap();
    // As a slow build writes it: the host has read each state before the next one is written.
    for (n, part) in [0, good.len() / 10, good.len() / 2, good.len() - 1].into_iter().enumerate() {
        rig.component("hello", &good[..part]);
        let is_unfinished = |line: &&Value| line["event"] == "component-unfinished";
        rig.until(|lines| lines.iter().filter(is_unfinished).count() > n).await;
    }
    rig.component("hello", &good);
    rig.serves("hello", 2).await;
    assert!(refusals(&rig.lines()).is_empty(), "{:?}", refusals(&rig.lines()));
    rig.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repaired_file_is_reported_as_accepted_once() {
    let rig = Rig::start().await;
    rig.plugin("hello", "hello-rust");
    rig.serves("hello", 1).await;
    let good = fs::read(guest_path("hello-rust")).unwrap();
    rig.component("hello", &good[..good.len() / 2]);
    rig.line(|line| is_about(line, "plugin-refused", "hello.yaml")).await;
    rig.component("hello", &good);
    let line = rig.event("hello", "plugin-accepted").await;
    assert!(line["file"].as_str().unwrap().ends_with("hello.wasm"), "{line}");

    let text = rig.text("hello");
    rig.file("hello", "name: [");
    rig.until(|lines| refusals(lines).len() == 2).await;
    rig.file("hello", &text);
    rig.line(|line| is_about(line, "plugin-accepted", "hello.yaml")).await;
    assert_eq!(refusals(&rig.lines()).len(), 2);
    // The log of the plugin has both.
    assert!(refusals(&rig.lines()).iter().all(|line| line["plugin"] == "hello"), "{:?}", rig.lines());
    rig.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_sorts_first_does_not_replace_a_plugin() {
    let rig = Rig::start().await;
    rig.plugin("hello", "hello-rust");
    rig.serves("hello", 1).await;
    rig.component("a", &fs::read(guest_path("hello-c")).unwrap());
    rig.file("a", &rig.text("hello").replace("hello.wasm", "a.wasm"));
    let line = rig.line(|line| is_about(line, "plugin-refused", "a.yaml")).await;
    assert!(line["message"].as_str().unwrap().contains("is already used in"), "{line}");
    // The same while the plugin's own file is malformed.
    let text = rig.text("hello");
    rig.file("hello", "name: [");
    rig.line(|line| is_about(line, "plugin-refused", "hello.yaml")).await;
    rig.file("hello", &text);
    rig.event("hello", "plugin-accepted").await;
    let loaded = rig.lines().iter().filter(|line| line["event"] == "plugin-loaded").count();
    assert_eq!(loaded, 1, "{:?}", rig.lines());
    rig.end().await;
}

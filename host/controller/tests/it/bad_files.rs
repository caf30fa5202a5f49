use std::fs;

use serde_json::Value;

use crate::received;
use crate::rig::{Rig, guest_path};

/// Waits for a refusal whose message contains these words.
async fn refused(rig: &Rig, words: &str) -> Value {
    let is_it = |line: &Value| {
        line["event"] == "plugin-refused" && line["message"].as_str().is_some_and(|it| it.contains(words))
    };
    rig.line(is_it).await
}

#[tokio::test(flavor = "multi_thread")]
async fn promise_6_a_version_that_fails_never_serves() {
    let rig = Rig::start().await;
    rig.plugin("hello", "hello-rust");
    rig.serves("hello", 1).await;
    let good = fs::read(guest_path("hello-rust")).unwrap();

    rig.component("hello", &good[..good.len() / 2]);
    let line = refused(&rig, "truncated").await;
    assert_eq!(line["older-version-serves"], true);
    rig.component("hello", b"hello");
    refused(&rig, "not WebAssembly").await;
    rig.component("hello", b"\0asm\x01\0\0\0");
    refused(&rig, "a core WebAssembly module, not a component").await;
    rig.component("hello", &fs::read(guest_path("panics-in-describe")).unwrap());
    refused(&rig, "did not describe itself").await;
    rig.file("hello", "name: hello\ncomponent: ../hello.wasm\nmemory: 1");
    refused(&rig, "unknown key `memory`").await;

    // The first version has kept serving.
    rig.create("a").await;
    received::until_current(&rig, "hello", 1).await;
    rig.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plugin_loads_once_its_missing_component_exists() {
    let rig = Rig::start().await;
    let file = r#"{"name": "hello", "component": "../hello.wasm", "serviceAccount": {"namespace": "default", "name": "hello"}}"#;
    rig.file("hello", file);
    let line = refused(&rig, "cannot be read").await;
    assert_eq!(line["older-version-serves"], false);
    assert!(line["hint"].as_str().unwrap().starts_with("build it"));
    rig.component("hello", &fs::read(guest_path("hello-rust")).unwrap());
    rig.serves("hello", 2).await;
    rig.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn plugins_whose_folder_is_gone_keep_running() {
    let rig = Rig::start().await;
    rig.plugin("hello", "hello-rust");
    rig.serves("hello", 1).await;
    rig.rename("plugins", "elsewhere");
    let line = refused(&rig, "cannot be read").await;
    assert!(line["file"].as_str().unwrap().ends_with("plugins"), "{line}");
    assert!(line["message"].as_str().unwrap().contains("Fix: restore it"), "{line}");
    assert_eq!(line["older-version-serves"], true);
    rig.create("a").await;
    received::until_current(&rig, "hello", 1).await;
    rig.rename("elsewhere", "plugins");
    rig.line(|line| line["event"] == "source-readable").await;
    rig.plugin("other", "hello-c");
    rig.serves("other", 1).await;
    let count = |event: &str| rig.lines().iter().filter(|line| line["event"] == event).count();
    assert_eq!((count("plugin-loaded"), count("plugin-unloaded")), (2, 0));
    rig.end().await;
}

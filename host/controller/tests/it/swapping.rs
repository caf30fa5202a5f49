use std::time::{Duration, Instant};

use oarlock_controller::control;
use oarlock_controller::runtime::Config;
use serde_json::json;

use crate::control_socket;
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
    // An editor that saves by renaming: the file is absent at one look of the host, and there at the next.
    rig.remove("hello");
    tokio::time::sleep(Duration::from_millis(500)).await;
    rig.plugin("hello", "hello-rust");
    rig.serves("hello", 3).await;
    rig.remove("hello");
    rig.event("hello", "plugin-unloaded").await;
    rig.plugin("hello", "hello-rust");
    rig.until(|lines| lines.iter().filter(|it| it["event"] == "plugin-loaded").count() == 4).await;
    rig.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn promise_6_a_change_that_comes_with_requests_of_an_operator_is_noticed_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let socket = control::bind(&folder.path().join("run"), None).unwrap();
    let path = socket.path().to_owned();
    let rig = Rig::start_with(|config| Config { control: Some(socket), ..config }).await;
    for plugin in ["p", "q"] {
        // Without a probation no task watches the version, and a request causes no further look at the files.
        rig.plugin_with(plugin, "hello-rust", json!({"probation": {"time": "0s"}}));
        rig.serves(plugin, 1).await;
    }
    // Until the stamps of the files can be relied on: from now on the host compares them every ten seconds.
    tokio::time::sleep(Duration::from_secs(6)).await;
    rig.component("p", &std::fs::read(guest_path("hello-c")).unwrap());
    let changed_at = Instant::now();
    // Meanwhile the host waits for the end of the burst of changes.
    for _ in 0..5 {
        control_socket::request(&path, "POST /v1/plugins/q/rollback").await;
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    rig.line(|line| line["plugin"] == "p" && line["generation"] == 2 && line["state"] == "fetched").await;
    let took = changed_at.elapsed();
    assert!(took < Duration::from_secs(7), "{took:?}");
    rig.end().await;
}

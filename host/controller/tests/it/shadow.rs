//! A shadow receives the same events as its plugin, writes nothing, and its differences are on the status.

use std::net::SocketAddr;

use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::api::{Api, ListParams, PostParams};
use oarlock_controller::admin;
use oarlock_controller::runtime::Config;
use oarlock_dev_cluster::faults::{Action, Fault, Match};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::rig::{Rig, guest_path, until_ok};

const LABEL: &str = "/metadata/labels/app.kubernetes.io~1managed-by";

/// Returns mirror with another value of the label of copies.
pub(crate) fn mirror_with_another_label() -> Vec<u8> {
    with_another_text("mirror", b"oarlock-mirror", b"oarlock-murror")
}

/// Returns a guest with another text of the same length.
pub(crate) fn with_another_text(guest: &str, before: &[u8], after: &[u8]) -> Vec<u8> {
    let mut bytes = std::fs::read(guest_path(guest)).unwrap();
    let at: Vec<_> = (0..bytes.len() - before.len()).filter(|&i| bytes[i..].starts_with(before)).collect();
    assert!(!at.is_empty());
    for at in at {
        bytes[at..at + after.len()].copy_from_slice(after);
    }
    bytes
}

/// Returns the status of a plugin.
async fn status(address: SocketAddr, plugin: &str) -> Value {
    let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
    let request = b"GET /plugins HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    stream.write_all(request).await.unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).await.unwrap();
    let begin = text.find('{').unwrap();
    let end = text.rfind('}').unwrap();
    let status: Value = serde_json::from_str(&text[begin..=end]).unwrap();
    let plugins = status["plugins"].as_array().unwrap();
    plugins.iter().find(|it| it["name"] == plugin).cloned().unwrap_or_default()
}

async fn source(rig: &Rig, name: &str) {
    let object = json!({
        "metadata": {"name": name, "annotations": {"oarlock.dev/mirror-to": "team-a"}},
        "data": {"note": "never-shown"},
    });
    let object: ConfigMap = serde_json::from_value(object).unwrap();
    rig.config_maps().create(&PostParams::default(), &object).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_shadow_that_writes_another_label_is_shown_by_path_and_never_writes() {
    let listener = admin::bind("127.0.0.1:0".parse().unwrap(), None).await.unwrap();
    let address = listener.address();
    let rig = Rig::start_with(|config| Config { admin: Some(listener), ..config }).await;
    let namespaces: Api<Namespace> = Api::all(rig.client.clone());
    let namespace = serde_json::from_value(json!({"metadata": {"name": "team-a"}})).unwrap();
    namespaces.create(&PostParams::default(), &namespace).await.unwrap();
    rig.component("next", &mirror_with_another_label());
    let limits = json!({"tries": 1_000, "logLinesPerSecond": 100_000});
    rig.plugin_with("mirror", "mirror", json!({"shadow": "../next.wasm", "limits": limits}));
    // Rights that are granted while the host asks for them are seen in part. If a plugin sees no Namespace
    // yet, this source has no copy before the next resync.
    for plugin in ["mirror", "mirror.shadow"] {
        rig.line(|line| {
            line["event"] == "subscription-opened"
                && (&line["plugin"], &line["subscription"]) == (&json!(plugin), &json!("namespaces"))
                && line["namespaces"] == Value::Null
        })
        .await;
    }

    // A shadow that reads the copy that the plugin has written already has nothing to write. So the plugin's
    // writes fail until the shadow has made its own.
    let creates = Match {
        resource: Some("configmaps".into()),
        verbs: vec!["create".into()],
        namespace: Some("team-a".into()),
        ..Match::default()
    };
    let failing = rig.cluster.faults().add(Fault::new(creates, Action::InternalError));
    source(&rig, "source-1").await;
    let until = async |what: &str, is_so: &dyn Fn(&Value) -> bool| {
        until_ok(what, async || {
            let shadow = status(address, "mirror").await["shadow"].take();
            if is_so(&shadow) { Ok(shadow) } else { Err(shadow) }
        })
        .await
    };
    until("the shadow's write", &|shadow| shadow["waiting"] == 1).await;
    rig.cluster.faults().remove(failing);
    let shadow = until("a difference", &|shadow| shadow["different"] == 1).await;
    let difference = &shadow["differences"][0];
    assert_eq!(difference["path"], LABEL, "{shadow:#}");
    assert_eq!(difference["object"], "configmaps team-a/source-1", "{shadow:#}");
    assert_ne!(difference["serving"], difference["shadow"]);
    let text = shadow.to_string();
    for value in ["oarlock-mirror", "oarlock-murror", "never-shown"] {
        assert!(!text.contains(value), "{text}");
    }
    assert_eq!((&shadow["compared"], &shadow["equal"]), (&json!(1), &json!(0)));
    // Every copy is the plugin's.
    let copies: Api<ConfigMap> = Api::namespaced(rig.client.clone(), "team-a");
    let written = ListParams::default().labels("app.kubernetes.io/managed-by=oarlock-murror");
    assert_eq!(copies.list(&written).await.unwrap().items.len(), 0);

    // Without the key in the file, the shadow is gone.
    rig.plugin("mirror", "mirror");
    rig.event("mirror.shadow", "plugin-unloaded").await;
    let mirror = status(address, "mirror").await;
    assert_eq!((&mirror["shadow"], &mirror["generation"]), (&Value::Null, &json!(1)), "it serves as before");
    rig.end().await;
}

/// Else each of the plugin's own writes would be a difference.
#[tokio::test(flavor = "multi_thread")]
async fn a_shadow_does_not_receive_the_own_writes_that_its_plugin_ignores() {
    let rig = Rig::start().await;
    rig.component("next", &std::fs::read(guest_path("writes")).unwrap());
    let config = json!({"ignoreOwnWrites": true});
    rig.plugin_with("w", "writes", json!({"shadow": "../next.wasm", "config": config}));
    for plugin in ["w", "w.shadow"] {
        rig.serves(plugin, 1).await;
    }
    rig.create("one").await;
    until_ok("the copy", async || {
        rig.config_maps().get_opt("copy-of-one").await.unwrap().ok_or("there is none")
    })
    .await;
    rig.create("last").await;
    for plugin in ["w", "w.shadow"] {
        rig.line(|line| line["plugin"] == plugin && line["event"] == "delivered" && line["name"] == "last")
            .await;
    }
    let lines = rig.end().await;
    let copies: Vec<_> =
        lines.iter().filter(|it| it["event"] == "delivered" && it["name"] == "copy-of-one").collect();
    assert!(copies.is_empty(), "{copies:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn promise_4_a_shadow_that_traps_or_never_answers_delays_nothing() {
    for guest in ["traps", "loops"] {
        let rig = Rig::start().await;
        rig.component("next", &std::fs::read(guest_path(guest)).unwrap());
        let more = json!({"shadow": "../next.wasm"});
        rig.plugin_with("hello", "hello-rust", more);
        rig.serves("hello", 1).await;
        rig.serves("hello.shadow", 1).await;
        rig.create("panic").await;
        rig.event("hello.shadow", "instance-lost").await;
        rig.create("after").await;
        rig.line(|line| line["plugin"] == "hello" && line["name"] == "after" && line["outcome"] == "done")
            .await;
        assert!(rig.lines().iter().all(|it| it["plugin"] != "hello" || it["event"] != "instance-lost"));
        rig.end().await;
    }
}

//! The Events about Plugin objects.

use std::time::Duration;

use k8s_openapi::api::core::v1::Event;
use kube::api::{Api, ListParams};
use oarlock_component_source::Policy;
use oarlock_controller::runtime::{Config, RestartPolicy};
use serde_json::json;

use crate::plugin_objects::Objects;
use crate::rig::until_ok;

/// Waits for an Event about the Plugin `hello`, and returns its type and message.
async fn event(objects: &Objects, reason: &str) -> (String, String) {
    let events = Api::<Event>::default_namespaced(objects.rig.client.clone());
    until_ok(&format!("the Event {reason}"), async || {
        let events = events.list(&ListParams::default()).await.unwrap();
        let of_it = |it: &&Event| it.involved_object.name.as_deref() == Some("hello");
        let all: Vec<_> = events.items.iter().filter(of_it).collect();
        let found = all.iter().find(|it| it.reason.as_deref() == Some(reason));
        let said = found.map(|it| (it.type_.clone().unwrap(), it.message.clone().unwrap()));
        said.ok_or_else(|| format!("{:?}", all.iter().map(|it| &it.reason).collect::<Vec<_>>()))
    })
    .await
}

/// The rig's host waits only some milliseconds before it restarts a plugin: no status would say so.
fn slow_restarts(config: Config) -> Config {
    let restart = RestartPolicy { base: Duration::from_secs(5), ..RestartPolicy::default() };
    Config { restart, ..config }
}

#[tokio::test(flavor = "multi_thread")]
async fn each_transition_of_a_plugin_object_is_an_event() {
    let objects = Objects::start_with(Policy::default(), slow_restarts).await;
    for guest in ["hello-rust", "hello-c", "traps"] {
        objects.component(&format!("{guest}.wasm"), guest);
    }
    let source = |guest: &str| json!({"file": {"path": format!("{guest}.wasm")}});
    objects.account("hello").await;
    objects.create("hello", json!({"source": source("hello-rust"), "serviceAccountName": "hello"})).await;
    let (kind, message) = event(&objects, "Serving").await;
    assert_eq!((&*kind, &*message), ("Normal", "Ready: version 0.1.0, generation 1"));

    objects.patch("hello", json!({"source": source("hello-c")})).await;
    let (kind, message) = event(&objects, "Switched").await;
    assert_eq!(kind, "Normal");
    assert!(message.contains(" serves, sha256:"), "{message}");

    objects.patch("hello", json!({"suspend": true})).await;
    let suspended = ("Normal".to_owned(), "Ready: the host does not call the plugin".to_owned());
    assert_eq!(event(&objects, "Suspended").await, suspended);
    objects.patch("hello", json!({"suspend": false})).await;
    objects.condition("hello", "Ready", "True", "Serving").await;

    // A version that loses its instances, and is not switched back.
    let crashing = json!({
        "source": source("traps"), "probation": {"time": "0s"}, "limits": {"lossTries": 100},
    });
    objects.patch("hello", crashing).await;
    let names = ["panic", "overflow"];
    for name in names {
        objects.rig.create(name).await;
    }
    assert_eq!(event(&objects, "CrashLoop").await.0, "Warning");
    for name in names {
        objects.rig.delete(name).await;
    }
    let (kind, message) = event(&objects, "Recovered").await;
    assert_eq!(kind, "Normal");
    assert!(message.starts_with("Degraded is False after CrashLoop: "), "{message}");

    // One that is switched back.
    let good = json!({"source": source("hello-rust"), "limits": null, "probation": null});
    objects.patch("hello", good).await;
    objects.condition("hello", "Ready", "True", "Serving").await;
    objects.rig.create(names[0]).await;
    objects
        .patch("hello", json!({"source": source("traps"), "probation": {"time": "10m", "maxLosses": 0}}))
        .await;
    let (kind, message) = event(&objects, "RolledBack").await;
    assert_eq!(kind, "Warning");
    assert!(message.starts_with("Degraded: ") && message.contains(" was rolled back: "), "{message}");
    objects.rig.end().await;
}

//! Tests of the whole plugin, on a fake host.

use oarlock_sdk::testing::{Host, Instance};
use oarlock_sdk::{Error, Failure, GroupVersionResource, gvr, key};
use serde_json::{Value, json};

use crate::Mirror;

fn configmaps() -> GroupVersionResource {
    gvr("", "v1", "configmaps")
}

/// Starts the plugin in a cluster with the namespaces `home`, `team-a`, `team-b` and `kube-system`.
fn start() -> (Host, Instance<Mirror>) {
    let host = Host::new();
    host.configure(json!({"excludedNamespaces": ["kube-system"]}));
    for name in ["home", "kube-system", "team-a", "team-b"] {
        host.insert(&gvr("", "v1", "namespaces"), &json!({"metadata": {"name": name}}));
    }
    let plugin = host.start::<Mirror>();
    (host, plugin)
}

fn source(mirror_to: &str, value: &str) -> Value {
    let annotations = json!({"oarlock.dev/mirror-to": mirror_to});
    json!({
        "metadata": {"namespace": "home", "name": "settings", "annotations": annotations},
        "data": {"a": value},
    })
}

fn written(host: &Host) -> Vec<String> {
    host.writes().iter().map(ToString::to_string).collect()
}

#[test]
fn the_copies_follow_their_source() {
    let (host, mut plugin) = start();
    plugin.add("configmap-sources", &source("*", "1")).unwrap();
    let created = ["create v1/configmaps team-a/settings", "create v1/configmaps team-b/settings"];
    assert_eq!(written(&host), created);

    plugin.update("configmap-sources", &source("team-a", "2")).unwrap();
    let changed = ["delete v1/configmaps team-b/settings", "patch v1/configmaps team-a/settings"];
    assert_eq!(written(&host)[2..], changed);
    let copy = host.object(&configmaps(), &key("team-a", "settings")).unwrap();
    assert_eq!(copy["data"], json!({"a": "2"}));

    plugin.delete("configmap-sources", "home", "settings").unwrap();
    assert_eq!(written(&host)[4..], ["delete v1/configmaps team-a/settings"]);
}

#[test]
fn an_object_of_another_owner_is_not_overwritten_but_reported() {
    let (host, mut plugin) = start();
    host.insert(&configmaps(), &json!({"metadata": {"namespace": "team-a", "name": "settings"}}));
    plugin.add("configmap-sources", &source("team-a", "1")).unwrap();
    let events: Vec<_> = host.events().iter().map(ToString::to_string).collect();
    assert_eq!(
        events,
        [
            "Warning MirrorRefused ConfigMap home/settings: ConfigMap team-a/settings exists and is not a copy of this object"
        ]
    );
}

#[test]
fn a_copy_that_is_deleted_is_created_again() {
    let (host, mut plugin) = start();
    plugin.add("configmap-sources", &source("team-a", "1")).unwrap();
    plugin.delete("configmap-copies", "team-a", "settings").unwrap();
    assert!(host.object(&configmaps(), &key("team-a", "settings")).is_some());
}

#[test]
fn the_copies_of_sources_that_are_gone_are_deleted_when_all_objects_are_known() {
    let (host, mut plugin) = start();
    let annotations = json!({"oarlock.dev/mirrored-from": "home/gone"});
    let orphan = json!({"metadata": {"namespace": "team-a", "name": "gone", "annotations": annotations}});
    host.insert(&configmaps(), &orphan);
    plugin.synced("configmap-copies", 1).unwrap();
    assert_eq!(written(&host), [""; 0]);
    plugin.synced("namespaces", 0).unwrap();
    assert_eq!(written(&host), ["delete v1/configmaps team-a/gone"]);
}

#[test]
fn a_secret_of_another_type_is_created_again() {
    let (host, mut plugin) = start();
    let secret = |kind: &str| {
        let mut secret = source("team-a", "MQ==");
        secret["type"] = kind.into();
        secret
    };
    plugin.add("secret-sources", &secret("Opaque")).unwrap();
    plugin.update("secret-sources", &secret("example.com/token")).unwrap();
    let again = ["delete v1/secrets team-a/settings", "create v1/secrets team-a/settings"];
    assert_eq!(written(&host)[1..], again);
}

#[test]
fn a_failed_write_is_tried_again_by_the_host() {
    let (host, mut plugin) = start();
    host.fail_next("create", Error::Unavailable("the API server".to_owned()));
    let failed = plugin.add("configmap-sources", &source("team-a", "1"));
    assert_eq!(failed, Err(Failure::Retry("the API server".to_owned())));
}

#[test]
fn a_new_namespace_gets_the_copies_that_all_namespaces_get() {
    let (host, mut plugin) = start();
    plugin.add("configmap-sources", &source("*", "1")).unwrap();
    plugin.add("namespaces", &json!({"metadata": {"name": "team-c"}})).unwrap();
    assert_eq!(written(&host)[2..], ["create v1/configmaps team-c/settings"]);
    plugin.add_initial("namespaces", &json!({"metadata": {"name": "team-d"}})).unwrap();
    assert_eq!(written(&host).len(), 3);
    assert_eq!(host.queue()[0].0.kind, "all-sources");
}

//! The example plugin `mirror`, whose account loses a right and gets it back.

use k8s_openapi::api::core::v1::{ConfigMap, Namespace, ServiceAccount};
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding};
use kube::api::{Api, DeleteParams, PostParams};
use oarlock_controller::runtime::Config;
use serde_json::{Value, json};

use crate::rig::{Rig, until_ok};

/// Creates a ClusterRole of this name with rights to these resources of the core group.
async fn role(rig: &Rig, name: &str, resources: &[&str], verbs: &[&str]) {
    let rule = json!({"apiGroups": [""], "resources": resources, "verbs": verbs});
    let role = json!({"metadata": {"name": name}, "rules": [rule]});
    let roles: Api<ClusterRole> = Api::all(rig.client.clone());
    roles.create(&PostParams::default(), &serde_json::from_value(role).unwrap()).await.unwrap();
}

/// Binds a ClusterRole to mirror's account.
async fn bind(rig: &Rig, role: &str) {
    let binding = json!({
        "metadata": {"name": role},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
        "subjects": [{"kind": "ServiceAccount", "name": "mirror", "namespace": "default"}],
    });
    let bindings: Api<ClusterRoleBinding> = Api::all(rig.client.clone());
    bindings.create(&PostParams::default(), &serde_json::from_value(binding).unwrap()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn mirror_copies_a_source_as_soon_as_its_account_may_see_namespaces_again() {
    let rig = Rig::start_with(|config| Config { provision: None, ..config }).await;
    let account = json!({"metadata": {"name": "mirror"}});
    let accounts: Api<ServiceAccount> = Api::namespaced(rig.client.clone(), "default");
    accounts.create(&PostParams::default(), &serde_json::from_value(account).unwrap()).await.unwrap();
    let namespaces: Api<Namespace> = Api::all(rig.client.clone());
    let namespace = serde_json::from_value(json!({"metadata": {"name": "team-a"}})).unwrap();
    namespaces.create(&PostParams::default(), &namespace).await.unwrap();
    let all = ["get", "list", "watch", "create", "patch", "delete"];
    role(&rig, "copies", &["configmaps", "secrets"], &all).await;
    role(&rig, "namespaces", &["namespaces"], &["list", "watch"]).await;
    bind(&rig, "copies").await;
    bind(&rig, "namespaces").await;
    // A source that fails once is parked: no retry copies it.
    rig.plugin_with("mirror", "mirror", json!({"limits": {"tries": 1}}));
    rig.serves("mirror", 1).await;

    let bindings: Api<ClusterRoleBinding> = Api::all(rig.client.clone());
    bindings.delete("namespaces", &DeleteParams::default()).await.unwrap();
    rig.event("mirror", "subscription-forbidden").await;
    let source = json!({
        "metadata": {"name": "settings", "annotations": {"oarlock.dev/mirror-to": "team-a"}},
        "data": {"colour": "blue"},
    });
    let source: ConfigMap = serde_json::from_value(source).unwrap();
    rig.config_maps().create(&PostParams::default(), &source).await.unwrap();
    let is_parked = |line: &Value| line["name"] == "settings" && line["outcome"] == "parked";
    rig.line(is_parked).await;

    bind(&rig, "namespaces").await;
    let copies: Api<ConfigMap> = Api::namespaced(rig.client.clone(), "team-a");
    let copy =
        until_ok("the copy", async || copies.get_opt("settings").await.unwrap().ok_or("no copy")).await;
    assert_eq!(copy.data.unwrap()["colour"], "blue");
    rig.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_writes_of_a_plugin_with_dry_run_are_checked_and_not_stored() {
    let rig = Rig::start().await;
    let namespaces: Api<Namespace> = Api::all(rig.client.clone());
    let namespace = serde_json::from_value(json!({"metadata": {"name": "team-a"}})).unwrap();
    namespaces.create(&PostParams::default(), &namespace).await.unwrap();
    rig.plugin_with("mirror", "mirror", json!({"dryRun": true}));
    rig.serves("mirror", 1).await;
    let source = json!({
        "metadata": {"name": "settings", "annotations": {"oarlock.dev/mirror-to": "team-a"}},
        "data": {"colour": "blue"},
    });
    let source: ConfigMap = serde_json::from_value(source).unwrap();
    rig.config_maps().create(&PostParams::default(), &source).await.unwrap();
    rig.line(|line| line["event"] == "guest-log" && line["message"] == "copied").await;
    let copies: Api<ConfigMap> = Api::namespaced(rig.client.clone(), "team-a");
    assert!(copies.get_opt("settings").await.unwrap().is_none(), "the write was a dry run");
    rig.end().await;
}

use k8s_openapi::api::core::v1::ServiceAccount;
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding};
use kube::api::{Api, DeleteParams, PostParams};
use oarlock_controller::runtime::Config;
use serde_json::json;

use crate::rig::Rig;

/// An account `hello` that may watch ConfigMaps.
async fn grant(rig: &Rig) {
    let account = json!({"metadata": {"name": "hello"}});
    let accounts: Api<ServiceAccount> = Api::namespaced(rig.client.clone(), "default");
    accounts.create(&PostParams::default(), &serde_json::from_value(account).unwrap()).await.unwrap();
    let role = json!({
        "metadata": {"name": "hello"},
        "rules": [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["list", "watch"]}],
    });
    let roles: Api<ClusterRole> = Api::all(rig.client.clone());
    roles.create(&PostParams::default(), &serde_json::from_value(role).unwrap()).await.unwrap();
    bind(rig).await;
}

async fn bind(rig: &Rig) {
    let binding = json!({
        "metadata": {"name": "hello"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "hello"},
        "subjects": [{"kind": "ServiceAccount", "name": "hello", "namespace": "default"}],
    });
    let bindings: Api<ClusterRoleBinding> = Api::all(rig.client.clone());
    bindings.create(&PostParams::default(), &serde_json::from_value(binding).unwrap()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn promise_5_rights_come_go_and_come_back() {
    let rig = Rig::start_with(|config| Config { provision: None, ..config }).await;
    rig.create("a").await;
    rig.plugin("hello", "hello-rust");
    let line = rig.event("hello", "plugin-waiting").await;
    let waits_for = line["waits-for"].to_string();
    assert!(waits_for.contains("the ServiceAccount default/hello, which does not exist"), "{waits_for}");
    assert!(waits_for.contains("default/hello may not list and watch v1/configmaps"), "{waits_for}");

    grant(&rig).await;
    rig.serves("hello", 1).await;
    rig.event("hello", "subscription-synced").await;

    let bindings: Api<ClusterRoleBinding> = Api::all(rig.client.clone());
    bindings.delete("hello", &DeleteParams::default()).await.unwrap();
    rig.event("hello", "subscription-forbidden").await;
    let told_before = rig.lines().len();
    rig.change("a", "unseen").await;
    rig.create("b").await;

    bind(&rig).await;
    rig.until(|lines| lines.iter().filter(|line| line["event"] == "subscription-opened").count() == 2).await;
    rig.line(|line| line["event"] == "delivered" && line["name"] == "b").await;
    let adds: Vec<_> = rig.lines()[told_before..]
        .iter()
        .filter(|line| line["event"] == "delivered")
        .map(|line| format!("{} {}", line["type"].as_str().unwrap(), line["name"].as_str().unwrap()))
        .collect();
    assert_eq!(adds, ["add a", "add b"]);
    rig.end().await;
}

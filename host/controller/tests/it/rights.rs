use k8s_openapi::api::core::v1::ServiceAccount;
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding, RoleBinding};
use kube::api::{Api, DeleteParams, PostParams};
use oarlock_controller::{admin, runtime::Config};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::rig::Rig;

/// Creates an account `hello` that may list and watch ConfigMaps.
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

/// Waits until `a` and `b` are delivered in the lines from this one on, and returns the first delivery of
/// each. The two have no order, and an update may follow.
async fn first_deliveries(rig: &Rig, from: usize) -> [String; 2] {
    let first = |lines: &[Value], name: &str| {
        let line = lines[from..].iter().find(|line| line["event"] == "delivered" && line["name"] == name)?;
        Some(format!("{} {} {name}", line["generation"], line["type"].as_str()?))
    };
    rig.until(|lines| ["a", "b"].iter().all(|name| first(lines, name).is_some())).await;
    ["a", "b"].map(|name| first(&rig.lines(), name).unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn promise_5_a_plugin_follows_rights_that_are_granted_revoked_and_granted_again() {
    let rig = Rig::start_with(|config| Config { provision: None, ..config }).await;
    rig.create("a").await;
    rig.plugin("hello", "hello-rust");
    // It may wait for the namespaces first.
    let line = |line: &Value| {
        let waits_for = line["waits-for"].to_string();
        line["event"] == "plugin-waiting"
            && waits_for.contains("the ServiceAccount default/hello, which does not exist")
            && waits_for.contains("default/hello may not list and watch v1/configmaps")
    };
    rig.line(line).await;

    grant(&rig).await;
    rig.serves("hello", 1).await;
    rig.event("hello", "subscription-synced").await;

    let bindings: Api<ClusterRoleBinding> = Api::all(rig.client.clone());
    bindings.delete("hello", &DeleteParams::default()).await.unwrap();
    rig.event("hello", "subscription-forbidden").await;
    let n_lines_before = rig.lines().len();
    rig.change("a", "unseen").await;
    rig.create("b").await;

    bind(&rig).await;
    rig.until(|lines| lines.iter().filter(|line| line["event"] == "subscription-opened").count() == 2).await;
    let adds = first_deliveries(&rig, n_lines_before).await;
    assert_eq!(adds, ["1 add a", "1 add b"]);
    rig.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_to_do_about_missing_rights_is_said_once() {
    let rig = Rig::start_with(|config| Config { provision: None, ..config }).await;
    rig.plugin("mirror", "mirror");
    let n = |line: &Value, text: &str| line["waits-for"].to_string().matches(text).count();
    let waits = |line: &Value| line["event"] == "plugin-waiting" && n(line, "may not list and watch") > 1;
    let line = rig.line(waits).await;
    assert_eq!(n(&line, "grant what `oarlock rbac` prints"), 1, "{line}");
    rig.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn promise_5_a_plugin_stops_when_its_account_is_deleted_and_is_loaded_again_for_the_next_one() {
    let rig = Rig::start_with(|config| Config { provision: None, ..config }).await;
    rig.create("a").await;
    grant(&rig).await;
    rig.plugin("hello", "hello-rust");
    rig.serves("hello", 1).await;
    rig.event("hello", "subscription-synced").await;

    // RBAC still names the account: the API server itself would allow everything.
    let accounts: Api<ServiceAccount> = Api::namespaced(rig.client.clone(), "default");
    accounts.delete("hello", &DeleteParams::default()).await.unwrap();
    let forbidden = rig.event("hello", "subscription-forbidden").await;
    let message = forbidden["message"].as_str().unwrap();
    assert!(message.starts_with("the ServiceAccount default/hello does not exist"), "{message}");
    let waiting = rig.event("hello", "plugin-waiting").await["waits-for"].to_string();
    assert!(waiting.contains("the ServiceAccount default/hello, which does not exist"), "{waiting}");
    let n_lines_before = rig.lines().len();
    rig.change("a", "unseen").await;
    rig.create("b").await;

    let account = json!({"metadata": {"name": "hello"}});
    accounts.create(&PostParams::default(), &serde_json::from_value(account).unwrap()).await.unwrap();
    rig.serves("hello", 2).await;
    let adds = first_deliveries(&rig, n_lines_before).await;
    assert_eq!(adds, ["2 add a", "2 add b"], "new chains, all of them as the new account");
    rig.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn promise_5_a_right_in_one_namespace_opens_no_subscription_to_a_cluster_scoped_resource() {
    let rig = Rig::start_with(|config| Config { provision: None, ..config }).await;
    let account = json!({"metadata": {"name": "census"}});
    let accounts: Api<ServiceAccount> = Api::namespaced(rig.client.clone(), "default");
    accounts.create(&PostParams::default(), &serde_json::from_value(account).unwrap()).await.unwrap();
    let role = json!({
        "metadata": {"name": "census"},
        "rules": [{"apiGroups": [""], "resources": ["namespaces"], "verbs": ["list", "watch"]}],
    });
    let roles: Api<ClusterRole> = Api::all(rig.client.clone());
    roles.create(&PostParams::default(), &serde_json::from_value(role).unwrap()).await.unwrap();
    let mut binding = json!({
        "metadata": {"name": "census"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "census"},
        "subjects": [{"kind": "ServiceAccount", "name": "census", "namespace": "default"}],
    });
    let bindings: Api<RoleBinding> = Api::namespaced(rig.client.clone(), "default");
    let in_default = serde_json::from_value(binding.clone()).unwrap();
    bindings.create(&PostParams::default(), &in_default).await.unwrap();

    let config = json!({"config": {"resource": {"plural": "namespaces"}}});
    rig.plugin_with("census", "census", config);
    let waits_for = rig.event("census", "plugin-waiting").await["waits-for"].to_string();
    assert!(waits_for.contains("v1/namespaces, which is cluster-scoped"), "{waits_for}");

    binding["metadata"]["name"] = json!("census-everywhere");
    let bindings: Api<ClusterRoleBinding> = Api::all(rig.client.clone());
    let everywhere = serde_json::from_value(binding).unwrap();
    bindings.create(&PostParams::default(), &everywhere).await.unwrap();
    rig.serves("census", 1).await;
    rig.line(|line| line["event"] == "delivered" && line["name"] == "default").await;
    rig.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn promise_5_nothing_is_cached_for_a_plugin_that_may_see_nothing() {
    let listener = admin::bind("127.0.0.1:0".parse().unwrap(), None).await.unwrap();
    let address = listener.address();
    let rig = Rig::start_with(|config| Config { provision: None, admin: Some(listener), ..config }).await;
    rig.create("a").await;
    // `hello` subscribes, `census` also declares reads.
    rig.plugin("hello", "hello-rust");
    rig.plugin("census", "census");
    rig.event("hello", "plugin-waiting").await;
    rig.event("census", "plugin-waiting").await;
    let mut connection = TcpStream::connect(address).await.unwrap();
    let request = "GET /plugins HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    connection.write_all(request.as_bytes()).await.unwrap();
    let mut page = String::new();
    connection.read_to_string(&mut page).await.unwrap();
    let page: Value = serde_json::from_str(page.split_once("\r\n\r\n").unwrap().1).unwrap();
    let informers: Vec<_> = page["informers"].as_array().unwrap().iter().map(|it| &it["resource"]).collect();
    assert_eq!(informers, ["v1/namespaces"]);
    assert!(page["plugins"][0]["waits-for"].to_string().contains("the right to watch `"), "{page}");
    rig.end().await;
}

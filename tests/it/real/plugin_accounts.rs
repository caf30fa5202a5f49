//! Who may run code as whom: the admission policy of the installation, the rights of the host's account, and
//! the opt-in of a namespace.

use std::fs;

use anyhow::Context;
use kube::config::Kubeconfig;
use oarlock_tests::cluster::{Cluster, HOST_ACCOUNT};
use oarlock_tests::manifests::printed;
use oarlock_tests::wait::wait_until;
use oarlock_tests::{control_plane, host_process::checkout};
use serde_json::{Value, json};

use crate::command::written;

const PLUGINS: &str = "/apis/oarlock.dev/v1alpha1/namespaces/team-a/plugins";
const CLUSTER_PLUGINS: &str = "/apis/oarlock.dev/v1alpha1/clusterplugins";

/// Users, and a Role for each in the namespace team-a. The others have no rights there.
const ROLES: &str = r#"
{kind: Role, apiVersion: rbac.authorization.k8s.io/v1, metadata: {name: author, namespace: team-a}, rules: [
  {apiGroups: [oarlock.dev], resources: [plugins], verbs: ["*"]}, {apiGroups: [""], resources: [pods], verbs: [create]}]}
---
{kind: Role, apiVersion: rbac.authorization.k8s.io/v1, metadata: {name: operator, namespace: team-a}, rules: [
  {apiGroups: [oarlock.dev], resources: [plugins], verbs: ["*"]}]}
---
{kind: Role, apiVersion: rbac.authorization.k8s.io/v1, metadata: {name: impersonator, namespace: team-a}, rules: [
  {apiGroups: [oarlock.dev], resources: [plugins], verbs: ["*"]},
  {apiGroups: [""], resources: [serviceaccounts], resourceNames: [mirror], verbs: [impersonate]}]}
---
{kind: ClusterRole, apiVersion: rbac.authorization.k8s.io/v1, metadata: {name: cluster-plugins}, rules: [
  {apiGroups: [oarlock.dev], resources: [clusterplugins], verbs: ["*"]}]}
---
{kind: Role, apiVersion: rbac.authorization.k8s.io/v1, metadata: {name: pods, namespace: oarlock-system}, rules: [
  {apiGroups: [""], resources: [pods], verbs: [create]}]}
"#;

#[tokio::test(flavor = "multi_thread")]
async fn promise_5_a_plugin_acts_only_as_an_account_that_its_author_may_use() -> anyhow::Result<()> {
    let control_plane = control_plane::start().await?;
    let cluster = installed(&control_plane.kubeconfig()).await?;
    cluster.apply(ROLES).await?;
    for (role, namespace, user) in [
        ("author", "team-a", "ada"),
        ("operator", "team-a", "ben"),
        ("impersonator", "team-a", "cleo"),
        ("author", "team-a", "dan"),
        ("pods", "oarlock-system", "eve"),
    ] {
        cluster.apply(&binding(role, Some(namespace), user).to_string()).await?;
    }
    for user in ["dan", "eve"] {
        cluster.apply(&binding("cluster-plugins", None, user).to_string()).await?;
    }
    // The API server enforces a policy a moment after it was stored.
    let draft = plugin("Plugin", "draft", "mirror");
    wait_until("the policy", async || {
        let answer = cluster.request_as("ben", "POST", &format!("{PLUGINS}?dryRun=All"), Some(&draft)).await;
        if answer.is_err() { Ok(()) } else { Err(answer) }
    })
    .await?;

    // Creation: with the right to create Pods for any account, with that to impersonate for one.
    let refusal = refused(&cluster, "ben", "POST", PLUGINS, &draft).await;
    assert!(
        refusal.contains("ben may not let a plugin act as the ServiceAccount team-a/mirror")
            && refusal.contains("neither impersonate it nor create Pods in the namespace team-a"),
        "{refusal}"
    );
    allowed(&cluster, "ada", "POST", PLUGINS, &plugin("Plugin", "mirror", "mirror")).await;
    allowed(&cluster, "ada", "POST", PLUGINS, &plugin("Plugin", "another", "another")).await;
    allowed(&cluster, "cleo", "POST", PLUGINS, &plugin("Plugin", "cleos", "mirror")).await;
    refused(&cluster, "cleo", "POST", PLUGINS, &plugin("Plugin", "cleos-2", "another")).await;
    // No right in the namespace, nor to Plugins of another one.
    refused(&cluster, "eve", "POST", PLUGINS, &plugin("Plugin", "eves", "mirror")).await;
    refused(&cluster, "ada", "POST", &PLUGINS.replace("team-a", "team-b"), &plugin("Plugin", "a", "a")).await;

    // Changes by a user without the right: what runs stays as it is, but can be stopped.
    let mirror = format!("{PLUGINS}/mirror");
    for change in [
        json!({"source": {"oci": {"reference": "registry.example.com/evil:1"}}}),
        json!({"serviceAccountName": "another"}),
        json!({"config": {"target": "elsewhere"}}),
        json!({"limits": {"memory": "1Gi"}}),
        json!({"concurrency": 8}),
        json!({"suspend": true, "config": {"target": "elsewhere"}}),
    ] {
        refused(&cluster, "ben", "PATCH", &mirror, &json!({"spec": change})).await;
    }
    allowed(&cluster, "ben", "PATCH", &mirror, &json!({"metadata": {"labels": {"seen-by": "ben"}}})).await;
    for stop in ["suspend", "dryRun"] {
        allowed(&cluster, "ben", "PATCH", &mirror, &json!({"spec": {stop: true}})).await;
        refused(&cluster, "ben", "PATCH", &mirror, &json!({"spec": {stop: false}})).await;
        refused(&cluster, "ben", "PATCH", &mirror, &json!({"spec": {stop: null}})).await;
    }
    allowed(&cluster, "cleo", "PATCH", &mirror, &json!({"spec": {"suspend": false, "dryRun": false}})).await;
    refused(&cluster, "cleo", "PATCH", &mirror, &json!({"spec": {"serviceAccountName": "another"}})).await;
    refused(
        &cluster,
        "cleo",
        "PATCH",
        &format!("{PLUGINS}/another"),
        &json!({"spec": {"config": {"a": "b"}}}),
    )
    .await;
    allowed(&cluster, "ada", "PATCH", &mirror, &json!({"spec": {"serviceAccountName": "another"}})).await;
    allowed(&cluster, "ben", "DELETE", &mirror, &json!({})).await;

    // A ClusterPlugin uses an account of the host's namespace, which the administrator of another one may
    // not.
    let everywhere = plugin("ClusterPlugin", "mirror", "mirror");
    let refusal = refused(&cluster, "ada", "POST", CLUSTER_PLUGINS, &everywhere).await;
    assert!(refusal.contains("cannot create resource"), "{refusal}");
    let refusal = refused(&cluster, "dan", "POST", CLUSTER_PLUGINS, &everywhere).await;
    assert!(
        refusal.contains("dan may not let a plugin act as the ServiceAccount oarlock-system/mirror"),
        "{refusal}"
    );
    let host = plugin("ClusterPlugin", "host", "oarlock");
    let refusal = refused(&cluster, "eve", "POST", CLUSTER_PLUGINS, &host).await;
    assert!(refusal.contains("oarlock-system/oarlock, the account of the host"), "{refusal}");
    allowed(&cluster, "eve", "POST", CLUSTER_PLUGINS, &everywhere).await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn promise_5_the_host_acts_only_in_namespaces_that_opted_in() -> anyhow::Result<()> {
    let control_plane = control_plane::start().await?;
    let administrator = installed(&control_plane.kubeconfig()).await?;
    let (namespace, name) = HOST_ACCOUNT;
    let kubeconfig = fs::read_to_string(administrator.kubeconfig_for(namespace, name).await?)?;
    let host = Cluster::connect(Kubeconfig::from_yaml(&kubeconfig)?).await?;

    for (expected, verb, resource, namespace, name) in [
        (true, "watch", "plugins.oarlock.dev", "", ""),
        (true, "watch", "clusterplugins.oarlock.dev", "", ""),
        (true, "patch", "plugins.oarlock.dev/status", "team-a", "mirror"),
        (true, "watch", "namespaces", "", ""),
        (true, "create", "subjectaccessreviews.authorization.k8s.io", "", ""),
        (true, "create", "selfsubjectaccessreviews.authorization.k8s.io", "", ""),
        (true, "create", "tokenreviews.authentication.k8s.io", "", ""),
        (true, "create", "events", "team-a", ""),
        (true, "create", "leases.coordination.k8s.io", "oarlock-system", ""),
        (true, "update", "leases.coordination.k8s.io", "oarlock-system", "oarlock"),
        // The account of a ClusterPlugin.
        (true, "impersonate", "serviceaccounts", "oarlock-system", "mirror"),
        (false, "update", "plugins.oarlock.dev", "team-a", "mirror"),
        (false, "update", "leases.coordination.k8s.io", "oarlock-system", "another"),
        (false, "create", "leases.coordination.k8s.io", "team-a", ""),
        (false, "list", "secrets", "", ""),
        (false, "get", "secrets", "oarlock-system", "registry"),
        (false, "create", "pods", "oarlock-system", ""),
        (false, "create", "serviceaccounts/token", "oarlock-system", "mirror"),
        (false, "impersonate", "serviceaccounts", "team-a", "mirror"),
        (false, "impersonate", "users", "", "system:admin"),
        (false, "impersonate", "groups", "", "system:masters"),
        (false, "bind", "clusterroles.rbac.authorization.k8s.io", "", "cluster-admin"),
    ] {
        let is_allowed = may(&host, verb, resource, namespace, name).await?;
        assert_eq!(is_allowed, expected, "{verb} {resource} {namespace}/{name}");
    }

    // mirror of team-a may write ConfigMaps in both namespaces.
    for namespace in ["team-a", "team-b"] {
        administrator.apply(&mirror_role(namespace)).await?;
    }
    let account = "system:serviceaccount:team-a:mirror";
    let create = async |namespace: &str, name: &str| {
        let path = format!("/api/v1/namespaces/{namespace}/configmaps");
        let object = json!({"metadata": {"name": name}});
        host.request_as(account, "POST", &path, Some(&object)).await.map_err(|error| format!("{error:#}"))
    };
    let refusal = create("team-a", "before").await.unwrap_err();
    assert!(refusal.contains("cannot impersonate"), "{refusal}");

    // Constrained: on objects of the namespace only.
    opt_in(&administrator, &["--constrained"]).await?;
    wait_until("the opt-in", async || create("team-a", "constrained").await.map(drop)).await?;
    let refusal = create("team-b", "constrained").await.unwrap_err();
    assert!(refusal.contains("impersonate"), "{refusal}");
    let secrets = host.request_as(account, "GET", "/api/v1/namespaces/team-a/secrets", None).await;
    assert!(secrets.is_err(), "mirror may not read Secrets");

    // Unconstrained: on all that the account may write. A binding cannot change its role.
    let binding = "/apis/rbac.authorization.k8s.io/v1/namespaces/team-a/rolebindings/oarlock-impersonator";
    administrator.request("DELETE", binding, None).await?;
    opt_in(&administrator, &[]).await?;
    for namespace in ["team-a", "team-b"] {
        wait_until("the opt-in", async || create(namespace, "unconstrained").await.map(drop)).await?;
    }
    let other = "system:serviceaccount:team-b:mirror";
    let path = "/api/v1/namespaces/team-b/configmaps";
    let answer = host.request_as(other, "GET", path, None).await.map_err(|error| format!("{error:#}"));
    assert!(answer.as_ref().is_err_and(|error| error.contains("cannot impersonate")), "{answer:?}");
    Ok(())
}

/// Applies the installation, and makes the namespaces of two teams.
pub(super) async fn installed(kubeconfig: &str) -> anyhow::Result<Cluster> {
    let cluster = Cluster::connect(Kubeconfig::from_yaml(kubeconfig)?).await?;
    for object in printed("oarlock-system")? {
        cluster.apply(&object.to_string()).await?;
    }
    for name in ["team-a", "team-b"] {
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
        cluster.apply(&namespace.to_string()).await?;
    }
    wait_until("the definitions", async || {
        let plugins = cluster.request("GET", PLUGINS, None).await;
        plugins.and(cluster.request("GET", CLUSTER_PLUGINS, None).await).map(drop)
    })
    .await?;
    Ok(cluster)
}

/// Applies what `oarlock rbac --namespace team-a` prints.
pub(super) async fn opt_in(administrator: &Cluster, arguments: &[&str]) -> anyhow::Result<()> {
    let arguments = [&["rbac", "--namespace", "team-a"], arguments].concat();
    administrator.apply(&written(checkout(), &arguments)?).await
}

async fn may(
    host: &Cluster,
    verb: &str,
    resource: &str,
    namespace: &str,
    name: &str,
) -> anyhow::Result<bool> {
    let (resource, subresource) = resource.split_once('/').unwrap_or((resource, ""));
    let (resource, group) = resource.split_once('.').unwrap_or((resource, ""));
    let attributes = json!({
        "verb": verb, "group": group, "resource": resource, "subresource": subresource,
        "namespace": namespace, "name": name,
    });
    let review = json!({
        "apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": attributes},
    });
    let path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
    let answer = host.request("POST", path, Some(&review)).await?;
    answer["status"]["allowed"].as_bool().context("the answer to a review says whether")
}

async fn allowed(cluster: &Cluster, user: &str, method: &str, path: &str, body: &Value) {
    let answer = cluster.request_as(user, method, path, Some(body)).await;
    assert!(answer.is_ok(), "{user}: {method} {path} {body}: {answer:?}");
}

async fn refused(cluster: &Cluster, user: &str, method: &str, path: &str, body: &Value) -> String {
    match cluster.request_as(user, method, path, Some(body)).await {
        Ok(answer) => panic!("{user}: {method} {path} {body}: {answer}"),
        Err(error) => {
            let text = format!("{error:#}");
            assert!(
                text.contains("Forbidden") || text.contains("forbidden"),
                "{user}: {method} {path}: {text}"
            );
            text
        }
    }
}

fn plugin(kind: &str, name: &str, account: &str) -> Value {
    json!({
        "apiVersion": "oarlock.dev/v1alpha1",
        "kind": kind,
        "metadata": {"name": name},
        "spec": {
            "source": {"oci": {"reference": "registry.example.com/mirror:1"}},
            "serviceAccountName": account,
            "config": {"target": "here"},
        },
    })
}

fn binding(role: &str, namespace: Option<&str>, user: &str) -> Value {
    let (kind, role_kind) =
        if namespace.is_some() { ("RoleBinding", "Role") } else { ("ClusterRoleBinding", "ClusterRole") };
    let mut binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": kind,
        "metadata": {"name": format!("{role}-{user}")},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": role_kind, "name": role},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}],
    });
    if let Some(namespace) = namespace {
        binding["metadata"]["namespace"] = namespace.into();
    }
    binding
}

fn mirror_role(namespace: &str) -> String {
    format!(
        r#"
{{kind: Role, apiVersion: rbac.authorization.k8s.io/v1, metadata: {{name: mirror, namespace: {namespace}}}, rules: [
  {{apiGroups: [""], resources: [configmaps], verbs: [create]}}]}}
---
{{kind: RoleBinding, apiVersion: rbac.authorization.k8s.io/v1, metadata: {{name: mirror, namespace: {namespace}}},
  roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: Role, name: mirror}},
  subjects: [{{kind: ServiceAccount, name: mirror, namespace: team-a}}]}}
"#
    )
}

//! Plugins whose component or configuration is elsewhere, with the rights of the installation: a registry,
//! and a Secret that the account may or may not read; and a ClusterPlugin.

use anyhow::{Context, ensure};
use oarlock_built_guests::component;
use oarlock_tests::cluster::Cluster;
use oarlock_tests::control_plane;
use oarlock_tests::host_process::checkout;
use oarlock_tests::operator::{change, condition, condition_of, status};
use oarlock_tests::wait::wait_until;
use serde_json::{Value, json};

use super::plugin_accounts::installed;
use super::plugin_objects::{WATCH_ROLE, components, host, opted_in, policy};
use crate::command::written;
use crate::registry::Registry;

const CLUSTER_PLUGIN: &str = "/apis/oarlock.dev/v1alpha1/clusterplugins/hello";

/// The account of the ClusterPlugin, which may watch ConfigMaps of team-b. The namespace of a host outside of
/// the cluster is that of its kubeconfig.
const CLUSTER_ACCOUNT: &str = r#"
{kind: ServiceAccount, apiVersion: v1, metadata: {name: hello, namespace: default}}
---
{kind: Role, apiVersion: rbac.authorization.k8s.io/v1, metadata: {name: hello, namespace: team-b}, rules: [
  {apiGroups: [""], resources: [configmaps], verbs: [get, list, watch]}]}
---
{kind: RoleBinding, apiVersion: rbac.authorization.k8s.io/v1, metadata: {name: hello, namespace: team-b},
  roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: hello},
  subjects: [{kind: ServiceAccount, name: hello, namespace: default}]}
"#;

/// The right to read the Secret with the configuration.
const READ_SECRET: &str = r#"
{kind: Role, apiVersion: rbac.authorization.k8s.io/v1, metadata: {name: settings, namespace: team-a}, rules: [
  {apiGroups: [""], resources: [secrets], resourceNames: [settings], verbs: [get]}]}
---
{kind: RoleBinding, apiVersion: rbac.authorization.k8s.io/v1, metadata: {name: settings, namespace: team-a},
  roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: settings},
  subjects: [{kind: ServiceAccount, name: hello, namespace: team-a}]}
"#;

#[tokio::test(flavor = "multi_thread")]
async fn a_plugin_of_a_registry_follows_its_tag_and_is_swapped_by_digest() -> anyhow::Result<()> {
    let registry = Registry::start()?;
    let (_control_plane, cluster) = opted_in().await?;
    components(&cluster, "host", &[])?;
    let folder = tempfile::tempdir()?;
    let address = &registry.address;
    let host = host(&cluster, "host", policy(&registry, folder.path())?).await?;
    let reference = format!("{address}/team-a/hello:1");
    let push = |guest: &str| -> anyhow::Result<String> {
        let path = component(guest).display().to_string();
        let pushed = written(folder.path(), &["plugin", "push", &reference, &path])?;
        let digest = pushed.trim_end().rsplit('@').next().context("a digest")?.to_owned();
        ensure!(digest.starts_with("sha256:"), "{pushed}");
        Ok(digest)
    };

    let first = push("hello-rust")?;
    let spec = json!({"source": {"oci": {"reference": reference, "pollSeconds": 10}}, "serviceAccountName": "hello"});
    let plugin = json!({
        "apiVersion": "oarlock.dev/v1alpha1", "kind": "Plugin",
        "metadata": {"name": "hello", "namespace": "team-a"}, "spec": spec,
    });
    cluster.apply(&plugin.to_string()).await?;
    let rust = serves(&cluster, &first, "").await?;

    // Another artifact under the tag.
    let second = push("hello-c")?;
    let c = serves(&cluster, &second, &rust).await?;
    switched(&cluster).await?;

    // A container image under the tag is refused, as the status says.
    registry.push_image(folder.path(), &reference)?;
    condition(&cluster, "Degraded", "True", "NotAComponent").await?;
    condition(&cluster, "Ready", "True", "Serving").await?;
    ensure!(status(&cluster).await?["digest"] == c.as_str(), "the version before serves");
    ensure!(push("hello-c")? == second, "the same component makes the same digest");
    condition(&cluster, "Degraded", "False", "AsExpected").await?;

    // The first one again, by its digest. The tag does not count any more.
    let pinned = format!("{address}/team-a/hello@{first}");
    change(&cluster, json!({"source": {"oci": {"reference": pinned}}})).await?;
    ensure!(serves(&cluster, &first, &c).await? == rust, "the component of the first artifact serves");

    // A digest that the registry does not have changes nothing but the conditions.
    let absent = format!("{address}/team-a/hello@sha256:{}", "0".repeat(64));
    change(&cluster, json!({"source": {"oci": {"reference": absent}}})).await?;
    condition(&cluster, "Degraded", "True", "NotFound").await?;
    condition(&cluster, "Ready", "True", "Serving").await?;
    ensure!(status(&cluster).await?["digest"] == rust.as_str(), "the version before serves");

    let (ended, _) = host.interrupt().await?;
    ensure!(ended.success(), "{ended}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn promise_5_configuration_is_read_as_the_account_of_the_plugin() -> anyhow::Result<()> {
    let (_control_plane, cluster) = opted_in().await?;
    components(&cluster, "host", &["hello-rust"])?;
    let host = host(&cluster, "host", Vec::new()).await?;
    let secret =
        json!({"metadata": {"name": "settings"}, "stringData": {"config": "labelSelector: app=hello"}});
    cluster.request("POST", "/api/v1/namespaces/team-a/secrets", Some(&secret)).await?;
    let plugin = json!({
        "apiVersion": "oarlock.dev/v1alpha1", "kind": "Plugin",
        "metadata": {"name": "hello", "namespace": "team-a"},
        "spec": {
            "source": {"file": {"path": "hello-rust.wasm"}}, "serviceAccountName": "hello",
            "configFrom": {"secret": {"name": "settings", "key": "config"}},
        },
    });
    cluster.apply(&plugin.to_string()).await?;
    let message = condition(&cluster, "Ready", "False", "ConfigForbidden").await?;
    ensure!(message.contains("the ServiceAccount team-a/hello may not `get` it"), "{message}");
    cluster.apply(READ_SECRET).await?;
    condition(&cluster, "Ready", "True", "Serving").await?;
    let (ended, _) = host.interrupt().await?;
    ensure!(ended.success(), "{ended}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_plugin_acts_as_an_account_of_the_hosts_namespace() -> anyhow::Result<()> {
    let control_plane = control_plane::start().await?;
    let cluster = installed(&control_plane.kubeconfig()).await?;
    cluster.apply(WATCH_ROLE).await?;
    cluster.apply(CLUSTER_ACCOUNT).await?;
    components(&cluster, "host", &["hello-rust"])?;
    let mut host = host(&cluster, "host", vec!["--level=debug".into()]).await?;
    let plugin = json!({
        "apiVersion": "oarlock.dev/v1alpha1", "kind": "ClusterPlugin", "metadata": {"name": "hello"},
        "spec": {"source": {"file": {"path": "hello-rust.wasm"}}, "serviceAccountName": "hello"},
    });
    cluster.apply(&plugin.to_string()).await?;
    // The host's own namespace opts in as any other one does.
    condition_of(&cluster, CLUSTER_PLUGIN, "Authorized", "False", "NamespaceNotOptedIn").await?;
    cluster.apply(&written(checkout(), &["rbac", "--namespace", "default"])?).await?;
    condition_of(&cluster, CLUSTER_PLUGIN, "Ready", "True", "Serving").await?;
    for team in ["team-a", "team-b"] {
        let object = json!({"metadata": {"name": "one", "labels": {"app": "hello"}}});
        cluster.request("POST", &format!("/api/v1/namespaces/{team}/configmaps"), Some(&object)).await?;
    }
    let delivered = |it: &&Value, team: &str| it["plugin"] == "hello" && it["namespace"] == team;
    host.wait_for("the ConfigMap of team-b", |printed| {
        printed.events("delivered").find(|it| delivered(it, "team-b")).map(|_| ())
    })
    .await?;
    ensure!(!host.printed().events("delivered").any(|it| delivered(&it, "team-a")), "it may not see team-a");
    cluster.request("DELETE", CLUSTER_PLUGIN, None).await?;
    host.wait_for("the end of the plugin", |printed| {
        printed.events("plugin-unloaded").find(|it| it["plugin"] == "hello").map(|_| ())
    })
    .await?;
    let (ended, _) = host.interrupt().await?;
    ensure!(ended.success(), "{ended}");
    Ok(())
}

/// Waits until the Plugin serves the artifact with this digest, and no longer the component with the digest
/// `before`. Returns the digest of its component.
async fn serves(cluster: &Cluster, manifest: &str, before: &str) -> anyhow::Result<String> {
    wait_until(&format!("{manifest} serves"), async || {
        let status = status(cluster).await;
        let is_it = |it: &Value| it["resolvedSource"] == manifest && it["phase"] == "Serving";
        let digest = status.as_ref().ok().filter(|it| is_it(it)).and_then(|it| it["digest"].as_str());
        digest.filter(|digest| *digest != before).map(str::to_owned).ok_or(status)
    })
    .await
}

/// Waits for the Event that another version serves.
async fn switched(cluster: &Cluster) -> anyhow::Result<()> {
    wait_until("the Event Switched", async || {
        let events = cluster.request("GET", "/api/v1/namespaces/team-a/events", None).await;
        let items = events.as_ref().ok().and_then(|it| it["items"].as_array());
        let is_it = |it: &Value| it["reason"] == "Switched" && it["involvedObject"]["name"] == "hello";
        if items.is_some_and(|items| items.iter().any(is_it)) { Ok(()) } else { Err(events) }
    })
    .await
}

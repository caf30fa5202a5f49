//! What an operator does with a Plugin: applies it, changes its component, suspends it, deletes it.

use anyhow::{Context, ensure};
use serde_json::{Value, json};

use crate::cluster::Cluster;
use crate::wait::wait_until;

/// The path of the Plugin.
pub const PLUGIN: &str = "/apis/oarlock.dev/v1alpha1/namespaces/team-a/plugins/hello";

/// The account of the Plugin, which may watch ConfigMaps of its namespace.
pub const ACCOUNT: &str = r#"
{kind: ServiceAccount, apiVersion: v1, metadata: {name: hello, namespace: team-a}}
---
{kind: Role, apiVersion: rbac.authorization.k8s.io/v1, metadata: {name: hello, namespace: team-a}, rules: [
  {apiGroups: [""], resources: [configmaps], verbs: [get, list, watch]}]}
---
{kind: RoleBinding, apiVersion: rbac.authorization.k8s.io/v1, metadata: {name: hello, namespace: team-a},
  roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: hello},
  subjects: [{kind: ServiceAccount, name: hello, namespace: team-a}]}
"#;

/// The versions of the Plugin, each as a value of `spec.source`.
#[derive(Clone, Debug)]
pub struct Versions {
    /// A component that serves, such as `hello-rust`.
    pub first: Value,
    /// Another one that serves.
    pub second: Value,
    /// One that is no component.
    pub broken: Value,
    /// One that traps when it is notified of the ConfigMap `panic`.
    pub trapping: Value,
}

/// Applies the Plugin with this value of `spec.source`.
///
/// # Errors
///
/// Those of the API server.
pub async fn apply(cluster: &Cluster, source: &Value) -> anyhow::Result<()> {
    let plugin = json!({
        "apiVersion": "oarlock.dev/v1alpha1",
        "kind": "Plugin",
        "metadata": {"name": "hello", "namespace": "team-a"},
        "spec": {"source": source, "serviceAccountName": "hello"},
    });
    cluster.apply(&plugin.to_string()).await
}

/// Waits until the Plugin serves its first version, then swaps its component, gives it a broken one and one
/// that crash-loops, suspends and resumes it. `say` is called with each step that has been seen in the
/// conditions.
///
/// # Errors
///
/// When the conditions do not become what they should be.
pub async fn swap_break_and_suspend(
    cluster: &Cluster,
    versions: &Versions,
    say: impl Fn(&str),
) -> anyhow::Result<()> {
    let Versions { first, second, broken, trapping } = versions;
    condition(cluster, "Ready", "True", "Serving").await?;
    let before = status(cluster).await?["digest"].clone();
    say("Ready=True: it serves");

    change(cluster, json!({"source": second})).await?;
    let serves = |status: &Value| status["digest"] != before && status["phase"] == "Serving";
    let good = wait_until("the second version serves", async || {
        let status = status(cluster).await;
        status.as_ref().ok().filter(|it| serves(it)).map(|it| it["digest"].clone()).ok_or(status)
    })
    .await?;
    say("another component: the second version serves");

    change(cluster, json!({"source": broken})).await?;
    condition(cluster, "Degraded", "True", "NotAComponent").await?;
    condition(cluster, "Ready", "True", "Serving").await?;
    ensure!(status(cluster).await?["digest"] == good, "the second version serves");
    say("Degraded=True NotAComponent: a broken version is refused, the second one serves");

    let probation = json!({"time": "10m", "maxLosses": 0});
    change(cluster, json!({"source": trapping, "probation": probation})).await?;
    condition(cluster, "Degraded", "True", "RolledBack").await?;
    condition(cluster, "Ready", "True", "Serving").await?;
    ensure!(status(cluster).await?["digest"] == good, "the second version serves again");
    say("Degraded=True RolledBack: a version that crashes is rolled back to the second one");

    change(cluster, json!({"source": first, "probation": null})).await?;
    condition(cluster, "Degraded", "False", "AsExpected").await?;
    change(cluster, json!({"suspend": true})).await?;
    condition(cluster, "Ready", "False", "Suspended").await?;
    say("Ready=False Suspended: it is called no more");
    change(cluster, json!({"suspend": false})).await?;
    condition(cluster, "Ready", "True", "Serving").await?;
    say("Ready=True: it is resumed");
    Ok(())
}

/// Changes fields of the Plugin's spec.
///
/// # Errors
///
/// Those of the API server.
pub async fn change(cluster: &Cluster, spec: Value) -> anyhow::Result<()> {
    cluster.request("PATCH", PLUGIN, Some(&json!({"spec": spec}))).await.map(drop)
}

/// Returns the Plugin's status.
///
/// # Errors
///
/// Those of the API server.
pub async fn status(cluster: &Cluster) -> anyhow::Result<Value> {
    Ok(cluster.request("GET", PLUGIN, None).await?["status"].take())
}

/// Waits until a condition of the Plugin has this status and reason, and returns its message.
///
/// # Errors
///
/// When it does not, with the whole status.
pub async fn condition(cluster: &Cluster, kind: &str, is: &str, reason: &str) -> anyhow::Result<String> {
    condition_of(cluster, PLUGIN, kind, is, reason).await
}

/// Waits until a condition of the object at this path has this status and reason, and returns its message.
///
/// # Errors
///
/// When it does not, with the whole status.
pub async fn condition_of(
    cluster: &Cluster,
    path: &str,
    kind: &str,
    is: &str,
    reason: &str,
) -> anyhow::Result<String> {
    let condition = wait_until(&format!("{kind}={is} {reason}"), async || {
        let status = cluster.request("GET", path, None).await.map(|mut it| it["status"].take());
        let conditions = status.as_ref().ok().and_then(|it| it["conditions"].as_array());
        let is_it = |it: &&Value| it["type"] == kind && it["status"] == is && it["reason"] == reason;
        let found = conditions.and_then(|it| it.iter().find(is_it)).cloned();
        found.ok_or(status)
    })
    .await?;
    condition["message"].as_str().map(str::to_owned).context("a condition has a message")
}

//! What an operator does with a Plugin, with the rights of the installation: apply, opt in, swap, break, roll
//! back, suspend, opt out, delete.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;
use kube::config::Kubeconfig;
use oarlock_tests::cluster::{Cluster, HOST_ACCOUNT, election_arguments};
use oarlock_tests::control_plane;
use oarlock_tests::host_process::{HostProcess, Printed};
use oarlock_tests::wait::wait_until;
use serde_json::{Value, json};

use super::plugin_accounts::{installed, opt_in};

const PLUGIN: &str = "/apis/oarlock.dev/v1alpha1/namespaces/team-a/plugins/hello";
const OPT_IN: &str = "/apis/rbac.authorization.k8s.io/v1/namespaces/team-a/rolebindings/oarlock-impersonator";

/// The account of the plugin, which may watch ConfigMaps of its namespace.
pub(super) const ACCOUNT: &str = r#"
{kind: ServiceAccount, apiVersion: v1, metadata: {name: hello, namespace: team-a}}
---
{kind: Role, apiVersion: rbac.authorization.k8s.io/v1, metadata: {name: hello, namespace: team-a}, rules: [
  {apiGroups: [""], resources: [configmaps], verbs: [get, list, watch]}]}
---
{kind: RoleBinding, apiVersion: rbac.authorization.k8s.io/v1, metadata: {name: hello, namespace: team-a},
  roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: hello},
  subjects: [{kind: ServiceAccount, name: hello, namespace: team-a}]}
"#;

/// The controller manager fills `oarlock-watch` from the roles with its label. None runs here.
pub(super) const WATCH_ROLE: &str = r#"
kind: ClusterRoleBinding
apiVersion: rbac.authorization.k8s.io/v1
metadata: {name: oarlock-watch-default}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: oarlock-watch-default}
subjects: [{kind: ServiceAccount, name: oarlock, namespace: oarlock-system}]
"#;

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_applies_swaps_breaks_suspends_and_deletes_a_plugin() -> anyhow::Result<()> {
    let control_plane = control_plane::start().await?;
    let cluster = installed(&control_plane.kubeconfig()).await?;
    cluster.apply(WATCH_ROLE).await?;
    cluster.apply(ACCOUNT).await?;
    let components = components(&cluster, "host", &["hello-rust", "hello-c", "traps"])?;
    fs::write(components.join("text.wasm"), "no component")?;
    let mut host = host(&cluster, "host", vec!["--level=debug".into()]).await?;

    // Not before the namespace has opted in.
    cluster.apply(&plugin("hello-rust").to_string()).await?;
    let message = condition(&cluster, "Authorized", "False", "NamespaceNotOptedIn").await?;
    assert!(message.contains("oarlock rbac --namespace team-a | kubectl apply -f -"), "{message}");
    opt_in(&cluster, &[]).await?;
    condition(&cluster, "Ready", "True", "Serving").await?;

    // It receives what its account may see.
    for (team, name) in [("team-b", "one"), ("team-a", "one"), ("team-a", "panic")] {
        let object =
            json!({"metadata": {"name": name, "labels": {"app": "hello"}}, "data": {"greeting": "hi"}});
        cluster.request("POST", &format!("/api/v1/namespaces/{team}/configmaps"), Some(&object)).await?;
    }
    host.wait_for("the ConfigMap of team-a", |printed| delivered(printed, "team-a")).await?;
    assert!(delivered(&host.printed(), "team-b").is_none(), "its account may not see team-b");

    swap_break_and_suspend(&cluster).await?;

    // Without the opt-in of its namespace it is unloaded.
    cluster.request("DELETE", OPT_IN, None).await?;
    condition(&cluster, "Authorized", "False", "NamespaceNotOptedIn").await?;
    // One status says both.
    let ready = status(&cluster).await?["conditions"].as_array().context("conditions")?.clone();
    let ready = ready.iter().find(|it| it["type"] == "Ready").context("Ready")?;
    assert_eq!((&ready["status"], &ready["reason"]), (&json!("False"), &json!("NamespaceNotOptedIn")));
    host.wait_for("the end of the plugin", |printed| {
        printed.events("plugin-unloaded").find(|it| it["plugin"] == "team-a.hello").map(|_| ())
    })
    .await?;
    opt_in(&cluster, &[]).await?;
    condition(&cluster, "Ready", "True", "Serving").await?;

    cluster.request("DELETE", PLUGIN, None).await?;
    host.wait_for("the end of the plugin", |printed| {
        let ends = printed.events("plugin-unloaded").filter(|it| it["plugin"] == "team-a.hello").count();
        (ends == 2).then_some(())
    })
    .await?;
    let (ended, _) = host.interrupt().await?;
    assert!(ended.success(), "{ended}");
    Ok(())
}

/// What a newcomer can try without a cluster.
#[tokio::test(flavor = "multi_thread")]
async fn the_same_scene_plays_on_oarlock_dev() -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let (kubeconfig, components) = (folder.path().join("kubeconfig"), folder.path().join("components"));
    fs::create_dir(&components)?;
    copy_guests(&components, &["hello-rust", "hello-c", "traps"])?;
    fs::write(components.join("text.wasm"), "no component")?;
    let mut arguments: Vec<OsString> = vec!["dev".into(), "--level=debug".into()];
    for (flag, path) in [("--kubeconfig", &kubeconfig), ("--component-dir", &components)] {
        arguments.extend([flag.into(), path.into()]);
    }
    let mut host = HostProcess::start(arguments)?;
    let written = wait_until("the kubeconfig", async || Kubeconfig::read_from(&kubeconfig)).await?;
    let cluster = Cluster::connect(written).await?;
    wait_until("the definitions", async || {
        cluster.request("GET", "/apis/oarlock.dev/v1alpha1/plugins", None).await
    })
    .await?;
    for name in ["team-a", "team-b"] {
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
        cluster.apply(&namespace.to_string()).await?;
    }
    cluster.apply(ACCOUNT).await?;
    cluster.apply(&plugin("hello-rust").to_string()).await?;
    condition(&cluster, "Ready", "True", "Serving").await?;
    // With this name, `traps` loses its instance.
    let object = json!({"metadata": {"name": "panic", "labels": {"app": "hello"}}});
    cluster.request("POST", "/api/v1/namespaces/team-a/configmaps", Some(&object)).await?;
    swap_break_and_suspend(&cluster).await?;
    cluster.request("DELETE", PLUGIN, None).await?;
    host.wait_for("the end of the plugin", |printed| {
        printed.events("plugin-unloaded").find(|it| it["plugin"] == "team-a.hello").map(|_| ())
    })
    .await?;
    let (ended, _) = host.interrupt().await?;
    assert!(ended.success(), "{ended}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_standby_writes_no_status_until_it_leads() -> anyhow::Result<()> {
    let control_plane = control_plane::start().await?;
    let cluster = installed(&control_plane.kubeconfig()).await?;
    cluster.apply(WATCH_ROLE).await?;
    cluster.apply(ACCOUNT).await?;
    opt_in(&cluster, &[]).await?;
    components(&cluster, "one", &["hello-rust"])?;
    // The standby finds no component, so its status of the Plugin would be another.
    components(&cluster, "two", &[])?;
    let leader = host(&cluster, "one", election_arguments()).await?;
    cluster.apply(&plugin("hello-rust").to_string()).await?;
    condition(&cluster, "Ready", "True", "Serving").await?;
    let mut standby = host(&cluster, "two", election_arguments()).await?;
    standby
        .wait_for("the standby refuses the Plugin", |printed| {
            printed.events("plugin-refused").next().map(|_| ())
        })
        .await?;
    change(&cluster, json!({"config": {"greeting": "hello"}})).await?;
    wait_until("the leader's status of the newest spec", async || {
        let status = status(&cluster).await;
        let is_it = status.as_ref().is_ok_and(|it| it["observedGeneration"] == 2);
        if is_it { Ok(()) } else { Err(status) }
    })
    .await?;
    let status = status(&cluster).await?;
    assert_eq!(status["phase"], "Serving", "{status:#}");

    leader.kill().await?;
    condition(&cluster, "Degraded", "True", "NotFound").await?;
    let (ended, _) = standby.interrupt().await?;
    assert!(ended.success(), "{ended}");
    Ok(())
}

/// Changes the Plugin, which serves `hello-rust`: to another component, to a file that is none, to one that
/// loses its instances, and back; and suspends it for a moment.
async fn swap_break_and_suspend(cluster: &Cluster) -> anyhow::Result<()> {
    let first = status(cluster).await?["digest"].clone();
    // Another component, then one that is none, then one that loses its instances.
    change(cluster, json!({"source": {"file": {"path": "hello-c.wasm"}}})).await?;
    wait_until("the other component", async || {
        let status = status(cluster).await;
        let is_other = status.as_ref().is_ok_and(|it| it["digest"] != first && it["phase"] == "Serving");
        if is_other { Ok(()) } else { Err(status) }
    })
    .await?;
    let good = status(cluster).await?["digest"].clone();
    change(cluster, json!({"source": {"file": {"path": "text.wasm"}}})).await?;
    condition(cluster, "Degraded", "True", "NotAComponent").await?;
    condition(cluster, "Ready", "True", "Serving").await?;
    let crashing =
        json!({"source": {"file": {"path": "traps.wasm"}}, "probation": {"time": "10m", "maxLosses": 0}});
    change(cluster, crashing).await?;
    condition(cluster, "Degraded", "True", "RolledBack").await?;
    assert_eq!(status(cluster).await?["digest"], good, "the version before serves again");
    change(cluster, json!({"source": {"file": {"path": "hello-rust.wasm"}}, "probation": null})).await?;
    condition(cluster, "Degraded", "False", "AsExpected").await?;

    // Suspended, and called again.
    change(cluster, json!({"suspend": true})).await?;
    condition(cluster, "Ready", "False", "Suspended").await?;
    change(cluster, json!({"suspend": false})).await?;
    condition(cluster, "Ready", "True", "Serving").await?;
    Ok(())
}

/// Makes the folder of a host's components, and copies these guests to it.
pub(super) fn components(cluster: &Cluster, of: &str, guests: &[&str]) -> anyhow::Result<PathBuf> {
    let folder = cluster.path(of).join("components");
    fs::create_dir_all(&folder)?;
    copy_guests(&folder, guests)?;
    Ok(folder)
}

fn copy_guests(folder: &Path, guests: &[&str]) -> anyhow::Result<()> {
    for guest in guests {
        fs::copy(oarlock_built_guests::component(guest), folder.join(format!("{guest}.wasm")))?;
    }
    Ok(())
}

/// Starts a host with the rights of the installation, and with the folders of this name.
pub(super) async fn host(cluster: &Cluster, name: &str, more: Vec<OsString>) -> anyhow::Result<HostProcess> {
    let (namespace, account) = HOST_ACCOUNT;
    let kubeconfig = cluster.kubeconfig_for(namespace, account).await?;
    let folder = cluster.path(name);
    let mut arguments = vec!["run".into(), "--watch-plugins".into()];
    for (flag, path) in [
        ("--kubeconfig", kubeconfig),
        ("--component-dir", folder.join("components")),
        ("--cache-dir", folder.join("cache")),
        ("--state-dir", folder.join("state")),
    ] {
        arguments.extend([flag.into(), path.into_os_string()]);
    }
    arguments.extend(more);
    HostProcess::start(arguments)
}

fn plugin(guest: &str) -> Value {
    json!({
        "apiVersion": "oarlock.dev/v1alpha1",
        "kind": "Plugin",
        "metadata": {"name": "hello", "namespace": "team-a"},
        "spec": {"source": {"file": {"path": format!("{guest}.wasm")}}, "serviceAccountName": "hello"},
    })
}

pub(super) async fn change(cluster: &Cluster, spec: Value) -> anyhow::Result<()> {
    cluster.request("PATCH", PLUGIN, Some(&json!({"spec": spec}))).await.map(drop)
}

pub(super) async fn status(cluster: &Cluster) -> anyhow::Result<Value> {
    Ok(cluster.request("GET", PLUGIN, None).await?["status"].take())
}

/// Waits until a condition of the Plugin has this status and reason, and returns its message.
pub(super) async fn condition(
    cluster: &Cluster,
    kind: &str,
    is: &str,
    reason: &str,
) -> anyhow::Result<String> {
    condition_of(cluster, PLUGIN, kind, is, reason).await
}

/// Waits until a condition of the object at this path has this status and reason, and returns its message.
pub(super) async fn condition_of(
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

fn delivered(printed: &Printed, namespace: &str) -> Option<()> {
    let of_plugin = |it: &&Value| it["plugin"] == "team-a.hello" && it["namespace"] == namespace;
    printed.events("delivered").find(of_plugin).map(|_| ())
}

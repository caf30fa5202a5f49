//! What an operator does with a Plugin of a registry, with the rights of the installation: apply, opt in,
//! swap, break, roll back, suspend, opt out, delete; and uninstall.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;
use kube::config::Kubeconfig;
use oarlock_built_guests::component;
use oarlock_control_plane::ControlPlane;
use oarlock_tests::audit;
use oarlock_tests::cluster::{Cluster, HOST_ACCOUNT, election_arguments, objects};
use oarlock_tests::control_plane;
use oarlock_tests::host_process::{HostProcess, Printed};
use oarlock_tests::operator::{
    ACCOUNT, PLUGIN, Versions, apply, change, condition, status, swap_break_and_suspend,
};
use oarlock_tests::wait::wait_until;
use serde_json::{Value, json};

use super::plugin_accounts::{installed, opt_in};
use super::uninstallation::uninstall;
use crate::command::written;
use crate::registry::Registry;

const OPT_IN: &str = "/apis/rbac.authorization.k8s.io/v1/namespaces/team-a/rolebindings/oarlock-impersonator";

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
    let registry = Registry::start()?;
    let control_plane = control_plane::start().await?;
    let cluster = installed(&control_plane.kubeconfig()).await?;
    cluster.apply(WATCH_ROLE).await?;
    cluster.apply(ACCOUNT).await?;
    let versions = published(&registry, &cluster.path("published"))?;
    components(&cluster, "host", &[])?;
    let policy = policy(&registry, &cluster.path("host"))?;
    let mut host = host(&cluster, "host", [vec!["--level=debug".into()], policy].concat()).await?;

    // Not before the namespace has opted in.
    apply(&cluster, &versions.first).await?;
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

    swap_break_and_suspend(&cluster, &versions, |_| ()).await?;

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
    for line in audit::lines(&control_plane.audit_log())? {
        audit::check_host_wrote_its_own(&line)?;
    }
    for object in objects(WATCH_ROLE)? {
        cluster.delete(&object).await?;
    }
    uninstall(&cluster).await
}

/// What a newcomer can try without a cluster.
#[tokio::test(flavor = "multi_thread")]
async fn the_same_scene_plays_on_oarlock_dev() -> anyhow::Result<()> {
    let registry = Registry::start()?;
    let folder = tempfile::tempdir()?;
    let kubeconfig = folder.path().join("kubeconfig");
    let versions = published(&registry, &folder.path().join("published"))?;
    let mut arguments: Vec<OsString> = vec!["dev".into(), "--level=debug".into()];
    arguments.extend(["--kubeconfig".into(), kubeconfig.clone().into_os_string()]);
    arguments.extend(policy(&registry, folder.path())?);
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
    apply(&cluster, &versions.first).await?;
    let object = json!({"metadata": {"name": "panic", "labels": {"app": "hello"}}});
    cluster.request("POST", "/api/v1/namespaces/team-a/configmaps", Some(&object)).await?;
    swap_break_and_suspend(&cluster, &versions, |_| ()).await?;
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
    let (_control_plane, cluster) = opted_in().await?;
    components(&cluster, "one", &["hello-rust"])?;
    // The standby finds no component, so its status of the Plugin would be another.
    components(&cluster, "two", &[])?;
    let leader = host(&cluster, "one", election_arguments()).await?;
    apply(&cluster, &json!({"file": {"path": "hello-rust.wasm"}})).await?;
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

/// Starts a control plane with the installation, the Plugin's account, and the opt-in of its namespace.
pub(super) async fn opted_in() -> anyhow::Result<(ControlPlane, Cluster)> {
    let control_plane = control_plane::start().await?;
    let cluster = installed(&control_plane.kubeconfig()).await?;
    cluster.apply(WATCH_ROLE).await?;
    cluster.apply(ACCOUNT).await?;
    opt_in(&cluster, &[]).await?;
    Ok((control_plane, cluster))
}

/// Pushes three components and an image that has none. Returns their references with digests.
fn published(registry: &Registry, folder: &Path) -> anyhow::Result<Versions> {
    fs::create_dir_all(folder)?;
    let repository = format!("{}/team-a/hello", registry.address);
    let source = |pushed: &str| -> anyhow::Result<Value> {
        let (_, digest) = pushed.trim_end().rsplit_once('@').context("a digest")?;
        Ok(json!({"oci": {"reference": format!("{repository}@{digest}")}}))
    };
    let push = |guest: &str| -> anyhow::Result<Value> {
        let path = component(guest).display().to_string();
        source(&written(folder, &["plugin", "push", &format!("{repository}:{guest}"), &path])?)
    };
    let image = registry.push_image(folder, &format!("{repository}:image"))?;
    Ok(Versions {
        first: push("hello-rust")?,
        second: push("hello-c")?,
        broken: source(&image)?,
        trapping: push("traps")?,
    })
}

/// Writes a policy that allows the registry on loopback, and returns the host's arguments for it.
pub(super) fn policy(registry: &Registry, folder: &Path) -> anyhow::Result<Vec<OsString>> {
    let address = &registry.address;
    let file = folder.join("policy.yaml");
    fs::write(&file, format!("{{privateAddresses: [127.0.0.1], plainHttp: [\"{address}\"]}}"))?;
    Ok(vec!["--source-policy".into(), file.into_os_string()])
}

/// Makes the folder of a host's components, and copies these guests to it.
pub(super) fn components(cluster: &Cluster, of: &str, guests: &[&str]) -> anyhow::Result<PathBuf> {
    let folder = cluster.path(of).join("components");
    fs::create_dir_all(&folder)?;
    for guest in guests {
        fs::copy(component(guest), folder.join(format!("{guest}.wasm")))?;
    }
    Ok(folder)
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

fn delivered(printed: &Printed, namespace: &str) -> Option<()> {
    let of_plugin = |it: &&Value| it["plugin"] == "team-a.hello" && it["namespace"] == namespace;
    printed.events("delivered").find(of_plugin).map(|_| ())
}

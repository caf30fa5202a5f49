//! Two tenants with a plugin each, with the rights of the installation: what the audit log has of their
//! writes, and an account that is deleted and made again.

use std::fs;

use anyhow::ensure;
use oarlock_tests::audit;
use oarlock_tests::cluster::Cluster;
use oarlock_tests::control_plane;
use oarlock_tests::host_process::checkout;
use oarlock_tests::operator::condition_of;
use oarlock_tests::wait::wait_until;
use serde_json::{Value, json};

use super::plugin_accounts::installed;
use super::plugin_objects::{WATCH_ROLE, components, host};
use crate::command::written;

const TEAMS: [&str; 2] = ["team-a", "team-b"];

/// The account and the Plugin of a team, which makes a ConfigMap from each ConfigMapGenerator.
const TEAM: &str = r#"
{kind: Role, apiVersion: rbac.authorization.k8s.io/v1, metadata: {name: generator, namespace: TEAM}, rules: [
  {apiGroups: [nullable.se], resources: [configmapgenerators], verbs: [get, list, watch]},
  {apiGroups: [""], resources: [configmaps], verbs: [get, list, watch, create, patch]}]}
---
{kind: RoleBinding, apiVersion: rbac.authorization.k8s.io/v1, metadata: {name: generator, namespace: TEAM},
  roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: generator},
  subjects: [{kind: ServiceAccount, name: generator, namespace: TEAM}]}
---
{kind: ServiceAccount, apiVersion: v1, metadata: {name: generator, namespace: TEAM}}
---
{kind: Plugin, apiVersion: oarlock.dev/v1alpha1, metadata: {name: generator, namespace: TEAM}, spec: {
  source: {file: {path: configmap-generator.wasm}}, serviceAccountName: generator}}
"#;

/// The right of the host to watch ConfigMapGenerators. The controller manager adds a role with the label for
/// it to `oarlock-watch`; none runs here.
const WATCH_GENERATORS: &str = r#"
{kind: ClusterRole, apiVersion: rbac.authorization.k8s.io/v1, metadata: {name: generators}, rules: [
  {apiGroups: [nullable.se], resources: [configmapgenerators], verbs: [list, watch]}]}
---
{kind: ClusterRoleBinding, apiVersion: rbac.authorization.k8s.io/v1, metadata: {name: generators},
  roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: generators},
  subjects: [{kind: ServiceAccount, name: oarlock, namespace: oarlock-system}]}
"#;

#[tokio::test(flavor = "multi_thread")]
async fn promise_5_the_audit_log_has_each_write_under_the_account_of_the_plugin() -> anyhow::Result<()> {
    let control_plane = control_plane::start().await?;
    let cluster = installed(&control_plane.kubeconfig()).await?;
    cluster.apply(WATCH_ROLE).await?;
    let definition = checkout().join("plugins/configmap-generator/crd.yaml");
    cluster.apply(&fs::read_to_string(definition)?).await?;
    cluster.apply(WATCH_GENERATORS).await?;
    components(&cluster, "host", &["configmap-generator"])?;
    let host = host(&cluster, "host", Vec::new()).await?;
    for team in TEAMS {
        cluster.apply(&written(checkout(), &["rbac", "--namespace", team])?).await?;
        cluster.apply(&TEAM.replace("TEAM", team)).await?;
    }
    for team in TEAMS {
        condition_of(&cluster, &plugin(team), "Ready", "True", "Serving").await?;
        generator(&cluster, team, "one").await?;
        generated(&cluster, team, "one").await?;
    }

    // Without its account, the plugin of team-a does nothing. That of team-b goes on.
    let account = "/api/v1/namespaces/team-a/serviceaccounts/generator";
    cluster.request("DELETE", account, None).await?;
    condition_of(&cluster, &plugin("team-a"), "Authorized", "False", "AccountMissing").await?;
    for team in TEAMS {
        generator(&cluster, team, "two").await?;
    }
    generated(&cluster, "team-b", "two").await?;
    let path = "/api/v1/namespaces/team-a/configmaps/two";
    ensure!(cluster.request("GET", path, None).await.is_err(), "no account may have written {path}");
    cluster.apply(&TEAM.replace("TEAM", "team-a")).await?;
    condition_of(&cluster, &plugin("team-a"), "Ready", "True", "Serving").await?;
    generated(&cluster, "team-a", "two").await?;
    let (ended, _) = host.interrupt().await?;
    ensure!(ended.success(), "{ended}");

    // What the host sent is its own, or the write of a plugin in its own namespace, as its account.
    let lines = audit::lines(&control_plane.audit_log())?;
    let mut written = Vec::new();
    for line in lines.iter().filter(|line| line["user"]["username"] == audit::HOST) {
        audit::check_host_wrote_its_own(line)?;
        let object = &line["objectRef"];
        if object["resource"] != "configmaps" {
            continue;
        }
        let team = object["namespace"].as_str().unwrap_or_default();
        let account = format!("system:serviceaccount:{team}:generator");
        ensure!(line["impersonatedUser"]["username"] == account.as_str(), "not as {account}: {line}");
        ensure!(line["verb"] == "patch", "only `patch` is what the plugin does: {line}");
        if audit::succeeded(line) {
            written.push(format!("{team}/{}", object["name"].as_str().unwrap_or_default()));
        }
    }
    for object in ["team-a/one", "team-a/two", "team-b/one", "team-b/two"] {
        ensure!(written.iter().any(|it| it == object), "no write of {object}, only of {written:?}");
    }
    Ok(())
}

fn plugin(team: &str) -> String {
    format!("/apis/oarlock.dev/v1alpha1/namespaces/{team}/plugins/generator")
}

/// Creates a ConfigMapGenerator.
async fn generator(cluster: &Cluster, team: &str, name: &str) -> anyhow::Result<()> {
    let object = json!({
        "apiVersion": "nullable.se/v1", "kind": "ConfigMapGenerator",
        "metadata": {"name": name}, "spec": {"content": team},
    });
    let path = format!("/apis/nullable.se/v1/namespaces/{team}/configmapgenerators");
    cluster.request("POST", &path, Some(&object)).await.map(drop)
}

/// Waits for the ConfigMap of a ConfigMapGenerator.
async fn generated(cluster: &Cluster, team: &str, name: &str) -> anyhow::Result<()> {
    let path = format!("/api/v1/namespaces/{team}/configmaps/{name}");
    wait_until(&path, async || {
        let answer = cluster.request("GET", &path, None).await;
        let is_it = |it: &Value| it["data"]["content"] == team;
        if answer.as_ref().is_ok_and(is_it) { Ok(()) } else { Err(answer) }
    })
    .await
}

//! `kubectl oarlock` as users of two teams, against a host with its admin address over HTTPS.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;
use oarlock_tests::cluster::{Cluster, HOST_ACCOUNT};
use oarlock_tests::control_plane;
use oarlock_tests::host_process::{HostProcess, binary};
use oarlock_tests::wait::wait_until;
use serde_json::json;

use super::plugin_accounts::installed;
use super::plugin_objects::WATCH_ROLE;

/// A Plugin of each team with its account, and a user of each team with the role of the installation.
const TEAM: &str = r#"
{kind: Namespace, apiVersion: v1, metadata: {name: TEAM}}
---
{kind: ServiceAccount, apiVersion: v1, metadata: {name: hello, namespace: TEAM}}
---
{kind: ServiceAccount, apiVersion: v1, metadata: {name: viewer, namespace: TEAM}}
---
{kind: Role, apiVersion: rbac.authorization.k8s.io/v1, metadata: {name: hello, namespace: TEAM}, rules: [
  {apiGroups: [""], resources: [configmaps], verbs: [get, list, watch]}]}
---
{kind: RoleBinding, apiVersion: rbac.authorization.k8s.io/v1, metadata: {name: hello, namespace: TEAM},
  roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: hello},
  subjects: [{kind: ServiceAccount, name: hello, namespace: TEAM}]}
---
{kind: RoleBinding, apiVersion: rbac.authorization.k8s.io/v1, metadata: {name: viewer, namespace: TEAM},
  roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: oarlock-plugins-view},
  subjects: [{kind: ServiceAccount, name: viewer, namespace: TEAM}]}
---
{kind: RoleBinding, apiVersion: rbac.authorization.k8s.io/v1, metadata: {name: oarlock-impersonator, namespace: TEAM},
  roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: oarlock-impersonator},
  subjects: [{kind: ServiceAccount, name: oarlock, namespace: oarlock-system}]}
"#;

/// The user of team-a may also change its Plugins.
const EDITOR: &str = r#"
{kind: RoleBinding, apiVersion: rbac.authorization.k8s.io/v1, metadata: {name: editor, namespace: team-a},
  roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: oarlock-plugins-edit},
  subjects: [{kind: ServiceAccount, name: viewer, namespace: team-a}]}
---
{kind: Role, apiVersion: rbac.authorization.k8s.io/v1, metadata: {name: pods, namespace: team-a}, rules: [
  {apiGroups: [""], resources: [pods], verbs: [create]}]}
---
{kind: RoleBinding, apiVersion: rbac.authorization.k8s.io/v1, metadata: {name: pods, namespace: team-a},
  roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: pods},
  subjects: [{kind: ServiceAccount, name: viewer, namespace: team-a}]}
"#;

/// A user with a kubeconfig, and the address of the host.
struct User {
    program: PathBuf,
    kubeconfig: PathBuf,
    server: String,
}

#[tokio::test(flavor = "multi_thread")]
async fn promise_5_users_of_the_kubectl_plugin_see_and_change_what_kubernetes_lets_them() -> anyhow::Result<()>
{
    let control_plane = control_plane::start().await?;
    let cluster = installed(&control_plane.kubeconfig()).await?;
    cluster.apply(WATCH_ROLE).await?;
    let components = cluster.path("components");
    fs::create_dir(&components)?;
    fs::copy(oarlock_built_guests::component("hello-rust"), components.join("hello.wasm"))?;
    for team in ["team-a", "team-b"] {
        cluster.apply(&TEAM.replace("TEAM", team)).await?;
        let plugin = json!({
            "apiVersion": "oarlock.dev/v1alpha1", "kind": "Plugin",
            "metadata": {"name": "hello", "namespace": team},
            "spec": {"source": {"file": {"path": "hello.wasm"}}, "serviceAccountName": "hello"},
        });
        cluster.apply(&plugin.to_string()).await?;
    }
    let mut host = start_host(&cluster, components).await?;
    let listening = |printed: &oarlock_tests::host_process::Printed| {
        let event = printed.events("admin-listening").next()?;
        Some(event["address"].as_str()?.to_owned())
    };
    let address = host.wait_for("the admin address", listening).await?;
    let server =
        format!("https://127.0.0.1:{}", address.rsplit(':').next().context("an address has a port")?);
    let program = cluster.path("kubectl-oarlock");
    std::os::unix::fs::symlink(binary("oarlock")?, &program)?;
    let completer = cluster.path("kubectl_complete-oarlock");
    std::os::unix::fs::symlink(binary("oarlock")?, &completer)?;
    let user = async |team: &str| -> anyhow::Result<User> {
        let kubeconfig = cluster.kubeconfig_for(team, "viewer").await?;
        Ok(User { program: program.clone(), kubeconfig, server: server.clone() })
    };
    let (ada, ben) = (user("team-a").await?, user("team-b").await?);

    // The API server: the objects of the own namespace, and of no other.
    wait_until("the Plugin to serve", async || {
        let listed = ada.succeeds("plugins -n team-a").await?;
        if listed.contains("Serving") { Ok(()) } else { Err(anyhow::anyhow!(listed)) }
    })
    .await?;
    let listed = ada.succeeds("plugins hello -n team-a -o yaml").await?;
    assert!(listed.contains("kind: Plugin\n") && listed.contains("serviceAccountName: hello"), "{listed}");
    assert_eq!(ada.succeeds("plugins -n team-a -o name").await?, "plugin.oarlock.dev/hello\n");
    let refused = ada.fails("plugins -n team-b").await?;
    assert!(refused.contains("forbidden") && refused.contains("oarlock-plugins-view"), "{refused}");
    let refused = ada.fails("plugins absent -n team-a").await?;
    assert!(refused.contains("not found"), "{refused}");

    // The host: usage, lines and parked objects of the own namespace, and of no other.
    let top = ada.succeeds_at_host("top -n team-a").await?;
    assert!(top.contains("hello") && top.contains("CPU(cores)") && !top.contains("team-a"), "{top}");
    let lines = ada.succeeds_at_host("logs hello -n team-a").await?;
    assert!(!lines.is_empty(), "the host keeps lines about a plugin that it has loaded");
    assert!(!lines.starts_with("0 "), "{lines}");
    assert_eq!(ada.succeeds_at_host("logs hello -n team-a --tail 0").await?, "");
    assert_eq!(ada.succeeds_at_host("dead-letters -n team-a -o name").await?, "");
    for theirs in
        ["top -n team-b", "top -A", "top --cluster", "logs hello -n team-b", "dead-letters -n team-b"]
    {
        let refused = ada.fails_at_host(theirs).await?;
        assert!(
            refused.contains("forbidden: system:serviceaccount:team-a:viewer may not get"),
            "{theirs}: {refused}"
        );
    }
    assert!(ben.succeeds_at_host("top hello -n team-b").await?.contains("hello"));
    let refused = ada.fails_at_host("logs absent -n team-a").await?;
    assert!(refused.contains("the host runs no Plugin team-a/absent"), "{refused}");
    let refused = ada.fails(&format!("top -n team-a --server-address {server}")).await?;
    assert!(refused.contains("--certificate-authority"), "a certificate that no authority knows: {refused}");

    // Writes need their own rights.
    let refused = ada.fails_at_host("redeliver hello --all -n team-a").await?;
    assert!(
        refused.contains("create plugins/redeliver") && refused.contains("oarlock-plugins-edit"),
        "{refused}"
    );
    let refused = ada.fails("suspend hello -n team-a").await?;
    assert!(refused.contains("cannot patch"), "{refused}");
    cluster.apply(EDITOR).await?;
    let redelivered = wait_until("the new right, which the host asks about again", async || {
        ada.succeeds_at_host("redeliver hello --all -n team-a").await
    })
    .await?;
    assert_eq!(redelivered, "plugin.oarlock.dev/hello: nothing is parked\n");
    let refused = ada.fails_at_host("rollback hello -n team-a").await?;
    assert!(refused.contains("cannot be rolled back"), "there is no version before: {refused}");
    for (command, phase) in [("suspend", "Suspended"), ("resume", "Serving")] {
        let done = ada.succeeds(&format!("{command} hello -n team-a")).await?;
        assert!(done.starts_with("plugin.oarlock.dev/hello "), "{done}");
        wait_until(phase, async || {
            let listed = ada.succeeds("plugins -n team-a").await?;
            if listed.contains(phase) { Ok(()) } else { Err(anyhow::anyhow!(listed)) }
        })
        .await?;
    }
    let refused = ben.fails("suspend hello -n team-a").await?;
    assert!(refused.contains("cannot patch"), "{refused}");

    // Without the address, the host is looked for with its Lease, which only some may read.
    let refused = ada.fails("top -n team-a").await?;
    assert!(refused.contains("--role=oarlock-connect"), "{refused}");

    // kubectl's completion.
    let completions = ada.run(&completer, "logs -n team-a ").await?.0;
    assert_eq!(completions, "hello\n:4\n");

    let (ended, printed) = host.interrupt().await?;
    assert!(ended.success(), "{ended}\n{}", printed.tail());
    Ok(())
}

async fn start_host(cluster: &Cluster, components: PathBuf) -> anyhow::Result<HostProcess> {
    let (namespace, name) = HOST_ACCOUNT;
    let kubeconfig = cluster.kubeconfig_for(namespace, name).await?;
    let mut arguments =
        vec!["run".into(), "--watch-plugins".into(), "--admin-addr=0.0.0.0:0".into(), "--level=debug".into()];
    for (flag, path) in [
        ("--kubeconfig", kubeconfig),
        ("--component-dir", components),
        ("--cache-dir", cluster.path("cache")),
        ("--state-dir", cluster.path("state")),
    ] {
        arguments.extend([flag.into(), path.into_os_string()]);
    }
    HostProcess::start(arguments)
}

// === impl User ===

impl User {
    async fn succeeds(&self, command: &str) -> anyhow::Result<String> {
        let (output, error, is_success) = self.run(&self.program, command).await?;
        anyhow::ensure!(is_success, "{command}: {output}{error}");
        Ok(output)
    }

    async fn fails(&self, command: &str) -> anyhow::Result<String> {
        let (output, error, is_success) = self.run(&self.program, command).await?;
        anyhow::ensure!(!is_success, "{command}: {output}{error}");
        Ok(error)
    }

    async fn succeeds_at_host(&self, command: &str) -> anyhow::Result<String> {
        self.succeeds(&self.at_host(command)).await
    }

    async fn fails_at_host(&self, command: &str) -> anyhow::Result<String> {
        self.fails(&self.at_host(command)).await
    }

    fn at_host(&self, command: &str) -> String {
        format!("{command} --insecure-skip-tls-verify --server-address {}", self.server)
    }

    /// Runs a program, and returns its output, its errors and whether it succeeded.
    async fn run(&self, program: &Path, command: &str) -> anyhow::Result<(String, String, bool)> {
        let mut process = tokio::process::Command::new(program);
        process.args(command.split(' ')).env("KUBECONFIG", &self.kubeconfig).kill_on_drop(true);
        let output = process.output().await?;
        let text = |bytes| String::from_utf8(bytes);
        Ok((text(output.stdout)?, text(output.stderr)?, output.status.success()))
    }
}

//! What a Pod of the host is given: its image, its rights, its logs and its token.

use std::fs;

use anyhow::{Context, Result, anyhow, ensure};
use oarlock_node::Component;
use serde_json::Value;

use crate::cluster::{Cluster, NAMESPACE, Pod, pods};

/// Where a Pod finds its token.
pub(crate) const TOKEN: &str = "var/run/secrets/kubernetes.io/serviceaccount/token";

pub(crate) async fn restricted(cluster: &mut Cluster) -> Result<()> {
    let digest = cluster.node.run("crane", ["digest", &cluster.images.current])?;
    for pod in pods(&cluster.node)? {
        // The kubelet has pulled it from the registry: there is no other way for an image to the node.
        ensure!(pod.image_id().ends_with(digest.trim()), "{} is not {digest}", pod.image_id());
        let process = cluster.process(&pod)?;
        let status = cluster.node.run("cat", [format!("/proc/{process}/status")])?;
        let field = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
            line.split_whitespace().next().unwrap_or_default().to_owned()
        };
        let found = ["Uid:", "Gid:", "CapEff:", "NoNewPrivs:", "Seccomp:"].map(field);
        ensure!(found == ["65532", "65532", "0000000000000000", "1", "2"], "the process has {found:?}");
        let mounts = cluster.node.run("cat", [format!("/proc/{process}/mounts")])?;
        let root = mounts.lines().find(|line| line.split(' ').nth(1) == Some("/")).context("no root")?;
        let options = root.split(' ').nth(3).unwrap_or_default();
        ensure!(options.split(',').any(|option| option == "ro"), "the root can be written: {root}");
    }
    // The namespace enforces it: a Pod that asks for more is refused.
    let refused = cluster.node.kubectl([
        "run",
        "privileged",
        "--namespace",
        NAMESPACE,
        "--image",
        &cluster.images.current,
        "--privileged",
    ]);
    let error = refused.err().context("a privileged Pod was accepted")?.to_string();
    ensure!(error.contains("violates PodSecurity \"restricted"), "{error}");
    Ok(())
}

pub(crate) async fn logs(cluster: &mut Cluster) -> Result<()> {
    let (leader, standby) = cluster.leader_and_standby()?;
    let logs = |pod: &Pod| cluster.node.kubectl(["logs", "--namespace", NAMESPACE, pod.name()]);
    let printed = logs(&leader)?;
    let lines: Vec<Value> = printed.lines().map(serde_json::from_str).collect::<Result<_, _>>()?;
    ensure!(
        lines.iter().any(|line| line["plugin"] == "mirror.mirror"),
        "no line about the plugin: {printed}"
    );
    let printed = logs(&standby)?;
    ensure!(printed.lines().count() > 0, "the standby has printed nothing");
    Ok(())
}

/// The kubelet renews a token after 80 % of its life, which is 8 minutes at least. After a restart it has
/// forgotten its tokens, so it requests new ones: this shows the same without the wait.
pub(crate) async fn token(cluster: &mut Cluster) -> Result<()> {
    let (leader, _) = cluster.leader_and_standby()?;
    let file = cluster.file_of(&leader, TOKEN)?;
    let before = cluster.node.run("cat", [&file])?;
    let credential_before = credential(cluster, &leader)?;

    cluster.node.kill(Component::Kubelet)?;
    cluster.node.start_component(Component::Kubelet)?;
    cluster.node.wait("another token in the Pod", |node| {
        ensure!(node.run("cat", [&file])? != before, "it is the same");
        Ok(())
    })?;
    let audit_log = cluster.node.audit_log();
    cluster.node.wait("a renewal of the Lease with the other token", |_| {
        let credential = last_credential(&fs::read_to_string(&audit_log)?, &leader)?;
        ensure!(credential != credential_before, "it is still {credential}");
        Ok(())
    })?;
    let (still, _) = cluster.leader_and_standby()?;
    ensure!(still.uid() == leader.uid() && still.restarts() == leader.restarts(), "the leader was restarted");
    Ok(())
}

fn credential(cluster: &Cluster, pod: &Pod) -> Result<String> {
    last_credential(&fs::read_to_string(cluster.node.audit_log())?, pod)
}

/// Returns the id of the token with which a Pod renewed the Lease last.
fn last_credential(audit_log: &str, pod: &Pod) -> Result<String> {
    let extra = "authentication.kubernetes.io/";
    let found = audit_log.lines().rev().filter(|line| line.contains("\"leases\"")).find_map(|line| {
        let line: Value = serde_json::from_str(line).ok()?;
        let of = |name: &str| line["user"]["extra"][format!("{extra}{name}")][0].as_str();
        (of("pod-uid")? == pod.uid()).then(|| of("credential-id").map(str::to_owned))?
    });
    found.ok_or_else(|| anyhow!("no renewal of {} in the audit log", pod.name()))
}

//! The uninstallation of docs/installing.md, and what it leaves.

use std::fs;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use oarlock_node::Node;
use oarlock_tests::host_process::binary;
use oarlock_tests::tool::output;
use serde_json::Value;

use crate::cluster::{Cluster, LABEL};

/// What belongs to the team of the plugin mirror, and not to the installation: a role that it applied.
const OF_THE_TEAM: &str = "/oarlock-watch-secrets";

pub(crate) async fn uninstall(cluster: &mut Cluster) -> Result<()> {
    let node = &mut cluster.node;
    // The list finds what is installed.
    ensure!(!leftovers(node)?.is_empty(), "the list of what is left would always be empty");
    node.kubectl(["delete", "plugins", "--all", "--all-namespaces"])?;
    node.kubectl(["delete", "clusterplugins", "--all"])?;
    let mut install = Command::new(binary("oarlock")?);
    let printed = output(install.args(["install", "--print", "--image", &cluster.images.current]))?;
    let file = tempfile::NamedTempFile::new()?;
    fs::write(&file, printed)?;
    node.kubectl(["delete".as_ref(), "-f".as_ref(), file.path().as_os_str()])?;
    let printed_by_rbac = "rolebindings,roles,clusterrolebindings,clusterroles,serviceaccounts";
    let labelled = ["--all-namespaces", "--selector", "app.kubernetes.io/managed-by=oarlock"];
    node.kubectl(["delete", printed_by_rbac].into_iter().chain(labelled))?;
    node.wait("an end of all that was installed", |node| {
        let left = leftovers(node)?;
        ensure!(left.is_empty(), "{left:?}");
        Ok(())
    })
}

/// Returns the objects with the label or a name of the installation, and those of its kinds.
fn leftovers(node: &Node) -> Result<Vec<String>> {
    let resources =
        node.kubectl(["api-resources", "--verbs=list,delete", "--output=name", "--cached=false"])?;
    // Kubernetes removes Events after an hour, and metrics are no objects.
    let resources: Vec<&str> =
        resources.lines().filter(|name| !name.starts_with("events") && !name.contains("metrics")).collect();
    let list = node.kubectl(["get", &resources.join(","), "--all-namespaces", "--output=json"])?;
    let list: Value = serde_json::from_str(&list)?;
    let (key, value) = LABEL.split_once('=').context("a label has a value")?;
    let mut left = Vec::new();
    for object in list["items"].as_array().context("a list has items")? {
        let metadata = &object["metadata"];
        let text = |name: &str| metadata[name].as_str().unwrap_or_default();
        let id = format!("{}/{}", text("namespace"), text("name"));
        let is_ours = metadata["labels"][key] == value
            || id.contains("oarlock")
            || object["apiVersion"].as_str().is_some_and(|version| version.starts_with("oarlock.dev/"));
        if is_ours && id != OF_THE_TEAM {
            left.push(format!("{} {id}", object["kind"]));
        }
    }
    Ok(left)
}

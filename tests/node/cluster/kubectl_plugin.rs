//! `kubectl oarlock` as an administrator uses it: found by kubectl in PATH, with a client certificate and no
//! token, and led to the host by its Lease and a forwarded port. What users may do is tested in
//! `tests/it/real/kubectl_plugin.rs`.

use std::env;
use std::os::unix::fs::symlink;

use anyhow::{Context, Result, ensure};
use oarlock_node::Node;
use oarlock_tests::host_process::binary;
use oarlock_tests::tool::output;
use serde_json::json;
use tempfile::TempDir;

use crate::cluster::Cluster;
use crate::install::{apply, plugin, until_condition};

const NAMESPACE: &str = "operators";
/// An object at which the plugin fails, so that it is parked.
const PARKED: &str = "terminal";

/// A folder in which kubectl finds its plugin.
struct Commands {
    folder: TempDir,
}

pub(crate) async fn commands(cluster: &mut Cluster) -> Result<()> {
    let node = &mut cluster.node;
    let commands = Commands::new()?;
    // A namespace that opts in, and an account.
    let objects = include_str!("faults/crash-loops.yaml");
    apply(node, &objects.replace("crash-loops", NAMESPACE).replace("panic", PARKED))?;
    let file = |key: &str, name: &str| {
        format!("--from-file={key}.wasm={}", oarlock_built_guests::component(name).display())
    };
    let files = [file("first", "traps"), file("second", "hello-rust")];
    node.kubectl(
        ["create", "configmap", "components", "--namespace", NAMESPACE]
            .map(str::to_owned)
            .iter()
            .chain(&files),
    )?;
    swap(node, "first")?;

    let listed = commands.run(node, "plugins")?;
    ensure!(listed.contains("team") && listed.contains("Serving"), "{listed}");
    node.wait("a parked object", |node| {
        let parked = commands.run(node, "dead-letters team")?;
        ensure!(parked.contains(&format!("{NAMESPACE}/{PARKED}")) && parked.contains("as asked"), "{parked}");
        Ok(())
    })?;
    let redelivered = commands.run(node, "redeliver team --all")?;
    ensure!(redelivered == "plugin.oarlock.dev/team: 1 object or key is tried again\n", "{redelivered}");
    let used = commands.run(node, "top team")?;
    ensure!(used.contains("CPU(cores)") && used.lines().count() == 2, "{used}");
    let lines = commands.run(node, "logs team")?;
    ensure!(lines.contains("as asked"), "{lines}");

    let first = plugin(node, NAMESPACE, "team")?["status"].take();
    swap(node, "second")?;
    let second = plugin(node, NAMESPACE, "team")?["status"].take();
    ensure!(first["digest"].is_string() && second["digest"] != first["digest"], "{second}");
    let back = commands.run(node, "rollback team")?;
    ensure!(back.starts_with("plugin.oarlock.dev/team rolled back from generation "), "{back}");
    node.wait("a status with the component before", |node| {
        let status = plugin(node, NAMESPACE, "team")?["status"].take();
        ensure!(status["digest"] == first["digest"], "{status}");
        Ok(())
    })?;
    node.wait("an Event about the roll-back", |node| {
        let events = commands.run(node, "events team")?;
        ensure!(events.contains("RolledBack"), "{events}");
        Ok(())
    })?;
    node.kubectl(["delete", "namespace", NAMESPACE]).map(drop)
}

/// Applies the Plugin with one of its two components, and waits until the host serves it.
fn swap(node: &mut Node, key: &str) -> Result<()> {
    let object = json!({
        "apiVersion": "oarlock.dev/v1alpha1",
        "kind": "Plugin",
        "metadata": {"name": "team", "namespace": NAMESPACE},
        "spec": {
            "source": {"configMap": {"name": "components", "key": format!("{key}.wasm")}},
            "serviceAccountName": "traps",
        },
    });
    apply(node, &object.to_string())?;
    let generation = plugin(node, NAMESPACE, "team")?["metadata"]["generation"].take();
    node.wait("a status about the spec", |node| {
        let status = plugin(node, NAMESPACE, "team")?["status"].take();
        ensure!(status["observedGeneration"] == generation, "{status}");
        Ok(())
    })?;
    until_condition(node, NAMESPACE, "team", "Ready", "Serving")
}

// === impl Commands ===

impl Commands {
    fn new() -> Result<Self> {
        let folder = tempfile::tempdir()?;
        symlink(binary("oarlock")?, folder.path().join("kubectl-oarlock"))?;
        Ok(Self { folder })
    }

    /// Runs `kubectl oarlock` in the namespace, and returns its output.
    fn run(&self, node: &Node, command: &str) -> Result<String> {
        let kubectl = node.programs().kubectl();
        let folder = kubectl.parent().context("kubectl is in a folder")?.to_owned();
        let others = env::var_os("PATH").unwrap_or_default();
        let path = [self.folder.path().to_owned(), folder].into_iter().chain(env::split_paths(&others));
        let mut command_line = node.kubectl_command();
        command_line.env("PATH", env::join_paths(path)?).arg("oarlock").args(command.split(' '));
        output(command_line.args(["--namespace", NAMESPACE]))
    }
}

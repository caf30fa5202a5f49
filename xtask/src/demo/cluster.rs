//! `cargo xtask demo --cluster`: the host as Pods of a real node, installed as the README says.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};
use oarlock_node::Node;

use crate::tool::Tool;
use crate::toolchain::command;
use crate::{cargo, checkout, guests, image, node, progress};

/// The namespace of the host.
const HOST: &str = "oarlock-system";
/// The label of its Pods.
const LABEL: &str = "app.kubernetes.io/name=oarlock";
/// The namespace of the sample.
const SAMPLE: &str = "hello";

/// Builds all, runs the scene on a node, and keeps the node until Ctrl-C unless it is to end after the scene.
pub(super) fn run(once: bool) -> Result<()> {
    if let Some(lack) = oarlock_node::lacks() {
        bail!("this machine cannot run a Kubernetes node: {lack}");
    }
    let programs = oarlock_node::prepare(|| Tool::Crane.build())?;
    guests::build(&["hello-rust".to_owned()])?;
    progress::step("the host (some minutes on a fresh checkout)", cargo::build_programs)?;
    let host = checkout::program("oarlock")?;
    let folder = checkout::target()?.join("node/demo");
    image::write_for_tests(&host, &folder)?;
    node::run(programs, once, move |node| scene(node, &host, &folder))
}

fn scene(node: &mut Node, host: &Path, image: &Path) -> Result<()> {
    let image = progress::step("pushing the image to the node's registry", || {
        node.push_image(image, "oarlock:demo")
    })?;
    let manifests = tempfile::NamedTempFile::new()?;
    let mut install = Command::new(host);
    install.args(["install", "--print", "--image", &image]);
    fs::write(&manifests, command::output(&mut install)?)?;
    progress::say(format!("$ oarlock install --print --image {image} | kubectl apply --server-side -f -"));
    let path = manifests.path().display().to_string();
    print(&node.kubectl(["apply", "--server-side", "-f", &path])?);
    show(node, &["rollout", "status", "deployment/oarlock", "-n", HOST, "--timeout=300s"])?;

    let root = checkout::root();
    let component = oarlock_built_guests::component("hello-rust");
    let file = format!("--from-file=hello.wasm={}", component.display());
    let sample = root.join("deploy/samples/hello.yaml").display().to_string();
    show(node, &["apply", "--server-side", "-f", &sample])?;
    show(node, &["create", "configmap", "hello", "-n", SAMPLE, &file])?;
    show(node, &["wait", "plugin/hello", "-n", SAMPLE, "--for=condition=Ready", "--timeout=300s"])?;
    show(node, &["get", "plugins", "-n", SAMPLE])?;
    greet(node, "before")?;
    until_received(node, "before")?;

    let leader = leader(node)?;
    let process = process(node, &leader)?;
    progress::say(format!("SIGKILL of the leader, {leader}"));
    let killed_at = Instant::now();
    node.run("kill", ["-KILL", &process])?;
    greet(node, "after")?;
    until_received(node, "after")?;
    let seconds = killed_at.elapsed().as_secs_f64();
    let now = self::leader(node)?;
    progress::say(format!("{now} has called the plugin {seconds:.1} s after that; the lease is 15 s"));
    show(node, &["get", "plugins", "-n", SAMPLE, "-o", "wide"])?;
    progress::say("demo: ok, a ConfigMap that was created without a leader was delivered");
    Ok(())
}

/// Creates a ConfigMap that the plugin of the sample receives.
fn greet(node: &Node, name: &str) -> Result<()> {
    show(node, &["create", "configmap", name, "-n", SAMPLE])?;
    show(node, &["label", "configmap", name, "-n", SAMPLE, "app=hello"])
}

/// Waits until a host has logged that the plugin received a ConfigMap.
fn until_received(node: &mut Node, name: &str) -> Result<()> {
    let what = format!("the plugin's line about the ConfigMap {name}");
    let line = node.wait(&what, |node| {
        let logs = node.kubectl(["logs", "-n", HOST, "-l", LABEL, "--tail=100"])?;
        let is_it = |line: &&str| line.contains("hello.hello") && line.contains(name);
        let line = logs.lines().find(is_it).map(str::to_owned);
        line.with_context(|| logs.clone())
    })?;
    print(&line);
    Ok(())
}

/// Returns the name of the Pod that holds the Lease.
fn leader(node: &mut Node) -> Result<String> {
    node.wait("a leader", |node| {
        let path = "jsonpath={.spec.holderIdentity}";
        let holder = node.kubectl(["get", "lease", "oarlock", "-n", HOST, "-o", path])?;
        let pods = node.kubectl(["get", "pods", "-n", HOST, "-l", LABEL, "-o", "name"])?;
        let mut names = pods.lines().filter_map(|line| line.strip_prefix("pod/"));
        let found = names.find(|name| holder.contains(name)).map(str::to_owned);
        found.with_context(|| format!("the Lease is that of {holder:?}, the Pods are {pods:?}"))
    })
}

/// Returns the process of the host in a Pod, as the node's process namespace knows it.
fn process(node: &Node, pod: &str) -> Result<String> {
    let path = "jsonpath={.status.containerStatuses[0].containerID}";
    let id = node.kubectl(["get", "pod", pod, "-n", HOST, "-o", path])?;
    let id = id.strip_prefix("containerd://").with_context(|| format!("{id:?} is no container's id"))?;
    let tasks = node.ctr(["tasks", "list"])?;
    // TASK PID STATUS
    let line = tasks.lines().find(|line| line.starts_with(id)).context("the container has no task")?;
    let process = line.split_whitespace().nth(1).context("ctr shows no process id")?;
    ensure!(process.parse::<u32>().is_ok_and(|id| id > 1), "{process:?} is no process id");
    Ok(process.to_owned())
}

/// Shows a command of kubectl, and what it prints.
fn show(node: &Node, arguments: &[&str]) -> Result<()> {
    progress::say(format!("$ kubectl {}", arguments.join(" ")));
    print(&node.kubectl(arguments)?);
    Ok(())
}

fn print(text: &str) {
    text.lines().for_each(|line| progress::say(format!("  {line}")));
}

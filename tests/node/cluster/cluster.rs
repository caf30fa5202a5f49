//! The cluster of all tests: a node, a host on it, and an administrator's client.

use anyhow::{Context, Result, anyhow, bail, ensure};
use kube::config::Kubeconfig;
use oarlock_node::Node;
use oarlock_tests::cluster::Cluster as ApiServer;
use serde_json::Value;

use crate::install::{self, Images};

/// The host's namespace.
pub(crate) const NAMESPACE: &str = "oarlock-system";
/// The label of the host's Pods.
pub(crate) const LABEL: &str = "app.kubernetes.io/name=oarlock";
/// The namespace of the copies that the plugin makes.
pub(crate) const COPIES: &str = "team-a";

/// A node on which the host is installed.
pub(crate) struct Cluster {
    pub(crate) node: Node,
    pub(crate) api: ApiServer,
    pub(crate) images: Images,
}

/// A Pod of the host.
#[derive(Clone, Debug)]
pub(crate) struct Pod(pub(crate) Value);

// === impl Cluster ===

impl Cluster {
    /// Starts a node, pushes the images of the host, and installs the host.
    pub(crate) async fn start() -> Result<Self> {
        let programs = oarlock_node::prepare(install::crane)?;
        let mut node = Node::start(programs, |step| eprintln!("node: {step}"))?;
        let kubeconfig = Kubeconfig::read_from(node.kubeconfig())?;
        let api = ApiServer::connect(kubeconfig).await?;
        let images = Images::push(&node)?;
        install::install(&mut node, &images.current)?;
        Ok(Self { node, api, images })
    }

    /// Waits until both replicas of the host are Ready, no other Pod of it exists, and one leads.
    pub(crate) async fn until_ready(&mut self) -> Result<()> {
        self.node.wait("two Ready replicas of the host, one of which leads", |node| {
            let pods = pods(node)?;
            let is_ready = |pod: &Pod| pod.is_ready() && !pod.is_ending();
            let shown = || pods.iter().map(Pod::shown).collect::<Vec<_>>().join(", ");
            ensure!(pods.len() == 2 && pods.iter().all(is_ready), "{}", shown());
            let holder = holder(node)?;
            ensure!(pods.iter().any(|pod| pod.is_named_in(&holder)), "{holder:?} leads, of {}", shown());
            Ok(())
        })
    }

    /// Changes the Deployment of the host with a JSON patch, and waits until the roll-out is complete.
    pub(crate) async fn change_deployment(&mut self, patch: &Value) -> Result<()> {
        let patch = patch.to_string();
        let patch = ["patch", "deployment", "oarlock", "-n", NAMESPACE, "--type=json", "--patch", &patch];
        self.node.kubectl(patch)?;
        self.until_rolled_out().await
    }

    /// Makes the Deployment of the host what it was before its last change.
    pub(crate) async fn undo_deployment(&mut self) -> Result<()> {
        self.node.kubectl(["rollout", "undo", "deployment/oarlock", "-n", NAMESPACE])?;
        self.until_rolled_out().await
    }

    async fn until_rolled_out(&mut self) -> Result<()> {
        self.node.kubectl(["rollout", "status", "deployment/oarlock", "-n", NAMESPACE, "--timeout=300s"])?;
        self.until_ready().await
    }

    /// Waits until the kubelet has restarted the host in a Pod once more than when the Pod was read.
    pub(crate) fn until_restarted(&mut self, pod: &Pod) -> Result<()> {
        self.node.wait("the restart of the host", |node| {
            let pods = pods(node)?;
            let now = pods.iter().find(|now| now.uid() == pod.uid()).context("its Pod is gone")?;
            ensure!(now.restarts() == pod.restarts() + 1, "{}", now.shown());
            Ok(())
        })
    }

    /// Returns the Pod that leads, and the one that does not.
    pub(crate) fn leader_and_standby(&self) -> Result<(Pod, Pod)> {
        let holder = holder(&self.node)?;
        let (leads, stands_by): (Vec<Pod>, Vec<Pod>) =
            pods(&self.node)?.into_iter().partition(|pod| pod.is_named_in(&holder));
        let [leader] = <[Pod; 1]>::try_from(leads).map_err(|pods| anyhow!("{holder} is none of {pods:?}"))?;
        let [standby] =
            <[Pod; 1]>::try_from(stands_by).map_err(|pods| anyhow!("not one standby: {pods:?}"))?;
        Ok((leader, standby))
    }

    /// Returns the process of the host in a Pod, as the node's process namespace knows it.
    pub(crate) fn process(&self, pod: &Pod) -> Result<String> {
        let tasks = self.node.ctr(["tasks", "list"])?;
        let container = pod.container()?;
        // TASK PID STATUS
        let line =
            tasks.lines().find(|line| line.starts_with(&container)).context("the container has no task")?;
        line.split_whitespace().nth(1).map(str::to_owned).context("ctr shows no process id")
    }

    /// Returns where the node sees a file of the host's container in a Pod.
    pub(crate) fn file_of(&self, pod: &Pod, path: &str) -> Result<String> {
        Ok(["/proc", &self.process(pod)?, "root", path].join("/"))
    }

    /// Waits until a process of the node has ended.
    pub(crate) fn until_ended(&mut self, process: &str) -> Result<()> {
        let folder = format!("/proc/{process}");
        self.node.wait("the end of the host", |node| {
            ensure!(node.run("test", ["-d", &folder]).is_err(), "process {process} runs");
            Ok(())
        })
    }

    /// Sends a signal to the host in a Pod.
    pub(crate) fn signal(&self, pod: &Pod, signal: &str) -> Result<()> {
        let process = self.process(pod)?;
        self.node.run("kill", [&format!("-{signal}"), &process]).map(drop)
    }

    /// Returns the file of a Pod's network namespace, which outlives its containers.
    pub(crate) fn network(&self, pod: &Pod) -> Result<String> {
        let sandboxes = self.node.ctr(["containers", "list", "--quiet"])?;
        for sandbox in sandboxes.lines() {
            let info: Value = serde_json::from_str(&self.node.ctr(["containers", "info", sandbox])?)?;
            let labels = &info["Labels"];
            if labels["io.kubernetes.pod.uid"] == pod.uid() && labels["io.cri-containerd.kind"] == "sandbox" {
                let namespaces = info["Spec"]["linux"]["namespaces"].as_array().into_iter().flatten();
                let network = namespaces.into_iter().find(|namespace| namespace["type"] == "network");
                let path = network.and_then(|network| network["path"].as_str());
                return path.map(str::to_owned).context("the sandbox has no network namespace");
            }
        }
        bail!("{} has no sandbox", pod.name())
    }

    /// Returns what a person would look at first after a failure.
    pub(crate) fn state(&self) -> String {
        let kubectl =
            |arguments: &[&str]| self.node.kubectl(arguments).unwrap_or_else(|error| format!("{error:#}"));
        let lease = kubectl(&["get", "lease", "-n", NAMESPACE]);
        let pods = kubectl(&["get", "pods", "-n", NAMESPACE, "-o", "wide"]);
        let events = kubectl(&["get", "events", "-n", NAMESPACE, "--sort-by=.lastTimestamp"]);
        let logs = kubectl(&["logs", "-n", NAMESPACE, "-l", LABEL, "--prefix", "--tail=15"]);
        let events: Vec<&str> = events.lines().collect();
        let events = events[events.len().saturating_sub(20)..].join("\n");
        format!("{pods}\n{lease}\n{events}\n{logs}")
    }
}

// === impl Pod ===

impl Pod {
    pub(crate) fn name(&self) -> &str {
        self.0["metadata"]["name"].as_str().unwrap_or_default()
    }

    pub(crate) fn uid(&self) -> &str {
        self.0["metadata"]["uid"].as_str().unwrap_or_default()
    }

    pub(crate) fn restarts(&self) -> u64 {
        self.0["status"]["containerStatuses"][0]["restartCount"].as_u64().unwrap_or_default()
    }

    /// Returns the image's digest, as the node has pulled it.
    pub(crate) fn image_id(&self) -> &str {
        self.0["status"]["containerStatuses"][0]["imageID"].as_str().unwrap_or_default()
    }

    pub(crate) fn is_ready(&self) -> bool {
        let conditions = self.0["status"]["conditions"].as_array().into_iter().flatten();
        conditions.into_iter().any(|condition| condition["type"] == "Ready" && condition["status"] == "True")
    }

    fn is_ending(&self) -> bool {
        !self.0["metadata"]["deletionTimestamp"].is_null()
    }

    /// Returns whether this is the identity of the host in this Pod: the name of the Pod and a random part.
    fn is_named_in(&self, identity: &str) -> bool {
        identity.split('_').next() == Some(self.name())
    }

    fn container(&self) -> Result<String> {
        let id = self.0["status"]["containerStatuses"][0]["containerID"].as_str().unwrap_or_default();
        id.strip_prefix("containerd://").map(str::to_owned).context("the Pod has no container")
    }

    fn shown(&self) -> String {
        let how = match (self.is_ending(), self.is_ready()) {
            (true, _) => "ends",
            (false, true) => "Ready",
            (false, false) => "not Ready",
        };
        let state = &self.0["status"]["containerStatuses"][0]["state"];
        format!("{} ({how}, {} restarts, {state})", self.name(), self.restarts())
    }
}

/// Returns the Pods of the host.
pub(crate) fn pods(node: &Node) -> Result<Vec<Pod>> {
    let list = node.kubectl(["get", "pods", "-n", NAMESPACE, "-l", LABEL, "-o", "json"])?;
    let list: Value = serde_json::from_str(&list)?;
    Ok(list["items"].as_array().context("a list has items")?.iter().cloned().map(Pod).collect())
}

/// Returns the identity of the leader.
pub(crate) fn holder(node: &Node) -> Result<String> {
    node.kubectl(["get", "lease", "oarlock", "-n", NAMESPACE, "-o", "jsonpath={.spec.holderIdentity}"])
}

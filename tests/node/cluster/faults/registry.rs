//! The Plugin mirror is in a registry, and gets a new version while the registry is down, slow, or lies, or
//! while the disk with the host's caches is full. The version before serves meanwhile; the new one serves in
//! the end.

mod proxy;

use std::fs;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use oarlock_node::{NODE_IP, REGISTRY};
use oarlock_tests::host_process::binary;
use serde_json::{Value, json};

use crate::cluster::{Cluster, NAMESPACE, pods};
use crate::install::{apply, plugin, until_condition};

use super::Begun;

use proxy::{Mode, Proxy};

/// The port of the proxy before the registry.
const PORT: u16 = 5001;
const ARTIFACT: &str = "plugins/mirror:latest";
/// A file in the volume with the caches.
const FILLER: &str = "var/cache/oarlock/filler";

#[derive(Clone, Copy, Debug)]
pub(super) enum RegistryFault {
    /// Each connection ends without an answer.
    Down,
    /// Each answer comes late, and then a little at a time.
    Slow,
    /// The content of each blob is another than its digest says.
    Lies,
    /// The registry works, and the disk with the host's caches has no space.
    DiskFull,
}

impl RegistryFault {
    pub(super) const ALL: [Self; 4] = [Self::Down, Self::Slow, Self::Lies, Self::DiskFull];
}

/// A registry that can fail.
pub(super) struct Broken {
    proxy: Proxy,
}

pub(super) async fn install(cluster: &mut Cluster, version: usize) -> Result<Broken> {
    let proxy = Proxy::start(&cluster.node, (NODE_IP, PORT), REGISTRY)?;
    push(cluster, version)?;
    let policy = json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "source-policy", "namespace": NAMESPACE},
        "data": {"policy.yaml": format!("{{privateAddresses: [{NODE_IP}], plainHttp: [\"{NODE_IP}:{PORT}\"]}}")},
    });
    apply(&cluster.node, &policy.to_string())?;
    let container = "/spec/template/spec/containers/0";
    let add = |path: String, value| json!({"op": "add", "path": path, "value": value});
    let patch = json!([
        add(format!("{container}/args/-"), json!("--source-policy=/etc/oarlock/policy.yaml")),
        add(format!("{container}/volumeMounts/-"), json!({"name": "policy", "mountPath": "/etc/oarlock"})),
        add("/spec/template/spec/volumes/-".to_owned(), json!({"name": "policy", "configMap": {"name": "source-policy"}})),
        {"op": "test", "path": "/spec/template/spec/volumes/0/name", "value": "cache"},
        // In memory, so that it can be full while the disk of the machine is not.
        {"op": "replace", "path": "/spec/template/spec/volumes/0/emptyDir", "value": {"medium": "Memory", "sizeLimit": "64Mi"}},
    ]);
    cluster.change_deployment(&patch).await?;
    let oci = json!({"reference": format!("{NODE_IP}:{PORT}/{ARTIFACT}"), "pollSeconds": 10});
    set_source(cluster, &json!({"configMap": null, "oci": oci}))?;
    until_serves(cluster, version)?;
    Ok(Broken { proxy })
}

pub(super) async fn remove(cluster: &mut Cluster) -> Result<()> {
    set_source(cluster, &json!({"oci": null, "configMap": {"name": "mirror", "key": "mirror.wasm"}}))?;
    cluster.undo_deployment().await?;
    cluster.node.kubectl(["delete", "configmap", "source-policy", "-n", NAMESPACE])?;
    let digest = digest(&component(0)?);
    until_digest(cluster, &digest)
}

impl Begun<'_> {
    pub(super) async fn break_registry(self, fault: RegistryFault) -> Result<(Duration, Instant)> {
        let Self { cluster, stage, load, standby, .. } = self;
        let version = stage.next();
        let proxy = &stage.registry.as_ref().context("no registry can fail")?.proxy;
        let before = plugin(&cluster.node, "mirror", "mirror")?["status"]["digest"].clone();
        match fault {
            RegistryFault::Down => proxy.set(Mode::Down),
            RegistryFault::Slow => proxy.set(Mode::Slow),
            RegistryFault::Lies => proxy.set(Mode::Lies),
            RegistryFault::DiskFull => fill(cluster)?,
        }
        push(cluster, version)?;
        let fault_at = Instant::now();
        let gap = load.first_copy_since(fault_at).await?;
        match fault {
            RegistryFault::Down => {
                until_fetched_before(cluster, "")?;
                // A host that starts now has what it fetched before.
                cluster.signal(&standby, "KILL")?;
                cluster.until_restarted(&standby)?;
                cluster.until_ready().await?;
            }
            RegistryFault::Slow => until_serves(cluster, version)?,
            RegistryFault::Lies => until_fetched_before(cluster, "digest")?,
            RegistryFault::DiskFull => until_fetched_before(cluster, "space")?,
        }
        load.first_copy_since(Instant::now()).await?;
        if !matches!(fault, RegistryFault::Slow) {
            let now = plugin(&cluster.node, "mirror", "mirror")?["status"]["digest"].clone();
            ensure!(now == before, "{now} serves, which the host cannot have");
        }
        match fault {
            RegistryFault::DiskFull => empty(cluster)?,
            _ => proxy.set(Mode::Passes),
        }
        let ended_at = Instant::now();
        until_serves(cluster, version)?;
        Ok((gap, ended_at))
    }
}

/// Returns the component of mirror, with one section more, for another digest. Version 0 has none.
fn component(version: usize) -> Result<Vec<u8>> {
    let mut component = fs::read(oarlock_built_guests::component("mirror"))?;
    if version > 0 {
        const NAME: &[u8] = b"tests";
        let content = version.to_string();
        let length = u8::try_from(1 + NAME.len() + content.len())?;
        ensure!(length < 0x80, "a length of one byte is less than 128");
        // A custom section.
        component.extend([0, length, NAME.len() as u8]);
        component.extend(NAME.iter().copied().chain(content.bytes()));
    }
    Ok(component)
}

fn digest(component: &[u8]) -> String {
    use sha2::{Digest, Sha256};
    Sha256::digest(component).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Pushes a version to the registry itself, which works all the time.
fn push(cluster: &Cluster, version: usize) -> Result<()> {
    let file = tempfile::Builder::new().suffix(".wasm").tempfile()?;
    fs::write(&file, component(version)?)?;
    let [host, file] = [binary("oarlock")?, file.path().to_owned()].map(|path| path.display().to_string());
    cluster.node.run(&host, ["plugin", "push", &format!("{REGISTRY}/{ARTIFACT}"), &file]).map(drop)
}

fn set_source(cluster: &Cluster, source: &Value) -> Result<()> {
    let patch = json!({"spec": {"source": source}}).to_string();
    let patch = ["patch", "plugin", "mirror", "-n", "mirror", "--type=merge", "--patch", &patch];
    cluster.node.kubectl(patch).map(drop)
}

fn until_serves(cluster: &mut Cluster, version: usize) -> Result<()> {
    let digest = digest(&component(version)?);
    until_digest(cluster, &digest)?;
    until_condition(&mut cluster.node, "mirror", "mirror", "Ready", "Serving")?;
    until_condition(&mut cluster.node, "mirror", "mirror", "Degraded", "AsExpected")
}

fn until_digest(cluster: &mut Cluster, digest: &str) -> Result<()> {
    cluster.node.wait("the other version of the Plugin", |node| {
        let status = plugin(node, "mirror", "mirror")?["status"].take();
        ensure!(
            status["digest"].as_str().is_some_and(|found| found.contains(digest)),
            "not {digest}: {status}"
        );
        Ok(())
    })
}

/// Waits until the Plugin says that it uses what was fetched before, with this text.
fn until_fetched_before(cluster: &mut Cluster, text: &str) -> Result<()> {
    cluster.node.wait(&format!("a component that was fetched before: {text}"), |node| {
        let plugin = plugin(node, "mirror", "mirror")?;
        let mut conditions = plugin["status"]["conditions"].as_array().into_iter().flatten();
        let says = |message: &Value| message.as_str().is_some_and(|message| message.contains(text));
        let is_before = |it: &Value| it == "SourceUnavailable" || it == "FetchedBefore";
        let is_it = |it: &Value| it["type"] == "Fetched" && is_before(&it["reason"]) && says(&it["message"]);
        ensure!(conditions.any(is_it), "{}", plugin["status"]);
        Ok(())
    })
}

/// Fills the volume with the caches of each replica.
fn fill(cluster: &Cluster) -> Result<()> {
    for pod in pods(&cluster.node)? {
        let file = cluster.file_of(&pod, FILLER)?;
        let full = cluster.node.run("dd", ["if=/dev/zero", &format!("of={file}"), "bs=4096"]);
        let error = format!("{:#}", full.err().context("the volume has no end")?);
        ensure!(error.contains("No space left on device"), "{error}");
    }
    Ok(())
}

fn empty(cluster: &Cluster) -> Result<()> {
    for pod in pods(&cluster.node)? {
        cluster.node.run("rm", [cluster.file_of(&pod, FILLER)?])?;
    }
    Ok(())
}

//! The CustomResourceDefinition of a resource that a plugin watches is deleted, with all of its objects, and
//! made again.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use oarlock_node::Node;
use oarlock_tests::host_process::checkout;
use serde_json::Value;

use crate::cluster::Cluster;
use crate::install::{apply, until_condition};

use super::Begun;

const NAMESPACE: &str = "generators";
/// The number of objects before the deletion, and of those after it.
const OBJECTS: usize = 20;

pub(super) fn install(cluster: &mut Cluster) -> Result<()> {
    let node = &mut cluster.node;
    define(node)?;
    apply(node, include_str!("generators.yaml"))?;
    let component = oarlock_built_guests::component("configmap-generator");
    let file = format!("--from-file=generator.wasm={}", component.display());
    node.kubectl(["create", "configmap", "generator", "--namespace", NAMESPACE, &file])?;
    until_condition(node, NAMESPACE, "generator", "Ready", "Serving")
}

pub(super) fn remove(cluster: &Cluster) -> Result<()> {
    let objects = ["namespace/generators", "clusterrole/oarlock-watch-generators"];
    cluster.node.kubectl(["delete"].iter().chain(&objects))?;
    undefine(&cluster.node)
}

impl Begun<'_> {
    pub(super) async fn delete_definition(self) -> Result<(Duration, Instant)> {
        let Self { cluster, stage, load, .. } = self;
        let node = &mut cluster.node;
        create(node, stage.next())?;
        until_generated(node)?;
        undefine(node)?;
        let gap = load.first_copy_since(Instant::now()).await?;
        ensure!(generators(node).is_err(), "the resource is still served");

        define(node)?;
        let ended_at = Instant::now();
        create(node, stage.next())?;
        until_generated(node)?;
        // The next time begins without objects.
        node.kubectl(["delete", "configmapgenerators", "--all", "--namespace", NAMESPACE])?;
        Ok((gap, ended_at))
    }
}

fn define(node: &mut Node) -> Result<()> {
    let definition = checkout().join("plugins/configmap-generator/crd.yaml");
    node.kubectl(["apply".as_ref(), "-f".as_ref(), definition.as_os_str()])?;
    node.wait("the resource to be served", |node| generators(node).map(drop))
}

/// Returns when the definition and its objects are gone.
fn undefine(node: &Node) -> Result<()> {
    node.kubectl(["delete", "crd", "configmapgenerators.nullable.se", "--timeout=300s"]).map(drop)
}

fn create(node: &Node, set: usize) -> Result<()> {
    let mut objects = String::new();
    for n in 0..OBJECTS {
        let _ = writeln!(
            objects,
            "---\n{{apiVersion: nullable.se/v1, kind: ConfigMapGenerator, \
             metadata: {{name: set-{set}-{n}, namespace: {NAMESPACE}}}, spec: {{content: set {set}}}}}",
        );
    }
    apply(node, &objects)
}

/// Waits until there is a ConfigMap for each generator, and none whose generator is gone.
fn until_generated(node: &mut Node) -> Result<()> {
    node.wait("a ConfigMap for each generator, and no other", |node| {
        let expected = contents(&generators(node)?, "/spec/content");
        let list = node.kubectl(["get", "configmaps", "-n", NAMESPACE, "-o", "json"])?;
        let mut list: Value = serde_json::from_str(&list)?;
        if let Some(items) = list["items"].as_array_mut() {
            items.retain(|item| item["metadata"]["ownerReferences"][0]["kind"] == "ConfigMapGenerator");
        }
        let found = contents(&list, "/data/content");
        ensure!(expected.len() == OBJECTS && found == expected, "{found:?}, not {expected:?}");
        Ok(())
    })
}

fn generators(node: &Node) -> Result<Value> {
    let list = node.kubectl(["get", "configmapgenerators", "-n", NAMESPACE, "-o", "json"])?;
    Ok(serde_json::from_str(&list)?)
}

/// Returns the names of objects, each with the text at a place in it.
fn contents(list: &Value, place: &str) -> BTreeSet<(String, String)> {
    let text = |value: Option<&Value>| value.and_then(Value::as_str).unwrap_or_default().to_owned();
    let items = list["items"].as_array().into_iter().flatten();
    items.map(|item| (text(item.pointer("/metadata/name")), text(item.pointer(place)))).collect()
}

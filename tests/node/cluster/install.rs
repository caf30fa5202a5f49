//! Images of the host, and its installation on a node: the objects of `deploy/kustomize/base`, as they are.

use std::env;
use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use oarlock_node::Node;
use oarlock_tests::host_process::{binary, checkout};
use serde_json::Value;

/// The variable that names the image of the host, a folder in the OCI image layout.
const IMAGE: &str = "OARLOCK_NODE_IMAGE";
/// The variable that names the image of the version before. Without it, the upgrade is between two images of
/// one binary.
const PREVIOUS: &str = "OARLOCK_NODE_PREVIOUS_IMAGE";
/// The variable that names the program in that image.
const PREVIOUS_PROGRAM: &str = "OARLOCK_NODE_PREVIOUS_PROGRAM";

/// The variable that names crane.
const CRANE: &str = "OARLOCK_NODE_CRANE";

/// References of images in the node's registry.
pub(crate) struct Images {
    pub(crate) current: String,
    pub(crate) previous: String,
    pub(crate) program_of_previous: PathBuf,
}

// === impl Images ===

impl Images {
    /// Pushes the images to the node's registry.
    pub(crate) fn push(node: &Node) -> Result<Self> {
        let current = node.push_image(&variable(IMAGE)?, "oarlock:2")?;
        let (previous, program_of_previous) = match env::var_os(PREVIOUS) {
            Some(image) => {
                (node.push_image(&PathBuf::from(image), "oarlock:1")?, variable(PREVIOUS_PROGRAM)?)
            }
            None => {
                let label = "oarlock.dev/tests=previous";
                (node.label_image(&current, "oarlock:1", label)?, binary("oarlock")?)
            }
        };
        Ok(Self { current, previous, program_of_previous })
    }
}

/// Returns the path of crane.
pub(crate) fn crane() -> Result<PathBuf> {
    variable(CRANE)
}

/// Returns the path that `cargo xtask test --node` has set.
fn variable(name: &str) -> Result<PathBuf> {
    let path = env::var_os(name).map(PathBuf::from);
    path.with_context(|| format!("{name} is not set: run these tests with `cargo xtask test --node`"))
}

/// Installs the host and the plugin mirror.
pub(crate) fn install(node: &mut Node, image: &str) -> Result<()> {
    let base = checkout().join("deploy/kustomize/base");
    let rendered = node.kubectl(["kustomize".as_ref(), base.as_os_str()])?;
    let named = rendered.replace("image: oarlock\n", &format!("image: {image}\n"));
    ensure!(named != rendered, "{} has no image \"oarlock\"", base.display());
    apply(node, &named)?;
    node.wait("the kinds of Oarlock to be served", |node| {
        node.kubectl(["get", "plugins,clusterplugins", "--all-namespaces"]).map(drop)
    })?;

    apply(node, include_str!("mirror.yaml"))?;
    let component = oarlock_built_guests::component("mirror");
    let file = format!("--from-file={}", component.display());
    node.kubectl(["create", "configmap", "mirror", "--namespace", "mirror", &file])?;
    until_condition(node, "mirror", "mirror", "Ready", "Serving")
}

/// Waits until a condition of a Plugin has this reason.
pub(crate) fn until_condition(
    node: &mut Node,
    namespace: &str,
    name: &str,
    kind: &str,
    reason: &str,
) -> Result<()> {
    node.wait(&format!("{kind} of the Plugin {name} with the reason {reason}"), |node| {
        let plugin = plugin(node, namespace, name)?;
        let mut conditions = plugin["status"]["conditions"].as_array().into_iter().flatten();
        ensure!(
            conditions.any(|condition| condition["type"] == kind && condition["reason"] == reason),
            "{}",
            plugin["status"]
        );
        Ok(())
    })
}

/// Returns a Plugin object.
pub(crate) fn plugin(node: &Node, namespace: &str, name: &str) -> Result<Value> {
    let plugin = node.kubectl(["get", "plugin", name, "--namespace", namespace, "-o", "json"])?;
    Ok(serde_json::from_str(&plugin)?)
}

/// Applies objects as the administrator.
pub(crate) fn apply(node: &Node, objects: &str) -> Result<()> {
    let file = tempfile::NamedTempFile::new()?;
    fs::write(&file, objects)?;
    let path = file.path().display().to_string();
    node.kubectl(["apply", "--server-side", "--force-conflicts", "-f", &path]).map(drop)
}

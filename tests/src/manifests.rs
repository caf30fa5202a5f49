//! The installation in its three forms: `oarlock install --print`, the kustomization and the chart.

use std::fs;
use std::process::Command;

use anyhow::Context;
use serde_json::Value;

use crate::cluster::objects;
use crate::host_process::{binary, checkout};
use crate::tool::{self, output};

/// The image of rendered manifests, without a tag.
pub const IMAGE: &str = "registry.example.com/oarlock";

/// Returns what `oarlock install --print` prints.
///
/// # Errors
///
/// When it fails.
pub fn printed(namespace: &str) -> anyhow::Result<Vec<Value>> {
    let mut install = Command::new(binary("oarlock")?);
    install.args(["install", "--print", "--image", IMAGE, "--namespace", namespace]);
    objects(&output(&mut install)?)
}

/// Returns what `kustomize build` makes of an overlay that sets the image, and has these components.
///
/// # Errors
///
/// When it fails.
pub fn kustomized(components: &[&str]) -> anyhow::Result<Vec<Value>> {
    // kustomize accepts relative paths only.
    let overlay = tempfile::tempdir_in(checkout().join("target"))?;
    let deploy = "../../deploy/kustomize";
    let components: Vec<_> = components.iter().map(|it| format!("{deploy}/components/{it}")).collect();
    let version = env!("CARGO_PKG_VERSION");
    let kustomization = serde_json::json!({
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "resources": [format!("{deploy}/base")],
        "components": components,
        "images": [{"name": "oarlock", "newName": IMAGE, "newTag": version}],
    });
    fs::write(overlay.path().join("kustomization.yaml"), kustomization.to_string())?;
    objects(&output(Command::new(tool::path("kustomize")?).arg("build").arg(overlay.path()))?)
}

/// Returns what `helm template` makes of the chart with these values, in YAML.
///
/// # Errors
///
/// When it fails, as it does for values that the schema refuses.
pub fn charted(namespace: &str, values: &str) -> anyhow::Result<Vec<Value>> {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("values.yaml");
    fs::write(&file, values).context("cannot write values")?;
    let mut helm = Command::new(tool::path("helm")?);
    // Nothing of the user's.
    helm.env("HOME", folder.path()).env_remove("HELM_NAMESPACE").env_remove("KUBECONFIG");
    helm.args(["template", "oarlock"]).arg(checkout().join("deploy/helm/oarlock"));
    helm.args(["--namespace", namespace, "--kube-version", "1.36.0", "--values"]).arg(file);
    objects(&output(&mut helm)?)
}

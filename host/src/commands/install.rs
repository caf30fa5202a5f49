//! `oarlock install --print`: the objects of the installation, as YAML with comments.
//!
//! The objects are those of `deploy/kustomize/base`, which this program carries. Namespace and image are
//! replaced in their text, so that the comments stay. The command sends nothing to an API server: the
//! operator reviews the objects, and applies them.

use std::io::Write;

use anyhow::{Context, Result, bail};
use include_dir::{Dir, include_dir};
use serde::Deserialize;

use crate::{
    args::{Image, InstallArgs, NamespaceName},
    failure::{Ended, Failure},
};

static BASE: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/../deploy/kustomize/base");
static DEFINITIONS: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/../deploy/crds");

/// The file of a folder that lists the others.
const KUSTOMIZATION: &str = "kustomization.yaml";
/// The resource of the base that is the folder of CustomResourceDefinitions.
const DEFINITIONS_FOLDER: &str = "../../crds";
/// The namespace in the files of the base.
const NAMESPACE: &str = "oarlock-system";
/// The image in the files of the base.
const IMAGE: &str = "image: oarlock\n";

/// The part of a kustomization that is read.
#[derive(Deserialize)]
struct Kustomization {
    resources: Vec<String>,
}

pub(crate) fn run(args: &InstallArgs) -> Ended {
    let InstallArgs { print: _, image, namespace } = args;
    let yaml = manifest(image, namespace).map_err(Failure::running)?;
    std::io::stdout().write_all(yaml.as_bytes()).map_err(Failure::output)
}

/// Returns the objects as a stream of YAML documents, in the order in which they can be applied.
fn manifest(Image(image): &Image, NamespaceName(namespace): &NamespaceName) -> Result<String> {
    let mut yaml =
        format!("# Oarlock {}, printed by `oarlock install --print`.\n", env!("CARGO_PKG_VERSION"));
    let Kustomization { resources } = serde_norway::from_str(text(&BASE, KUSTOMIZATION)?)?;
    for resource in resources {
        if resource == DEFINITIONS_FOLDER {
            definitions()?.into_iter().for_each(|it| append(&mut yaml, it));
        } else {
            let text = text(&BASE, &resource)?;
            let text = in_namespace(text, namespace)?.replace(IMAGE, &format!("image: {}\n", scalar(image)?));
            append(&mut yaml, &text);
        }
    }
    Ok(yaml)
}

/// Returns the texts of the CustomResourceDefinitions.
fn definitions() -> Result<Vec<&'static str>> {
    let mut files: Vec<_> = DEFINITIONS
        .files()
        .filter(|file| {
            file.path().extension().is_some_and(|it| it == "yaml") && !file.path().ends_with(KUSTOMIZATION)
        })
        .collect();
    files.sort_by_key(|file| file.path());
    if files.is_empty() {
        bail!("this program carries no CustomResourceDefinitions");
    }
    files.into_iter().map(|file| file.contents_utf8().context("a definition is no text")).collect()
}

/// Replaces the namespace in the text of a file: as the value of a key, and within the expression of the
/// admission policy.
fn in_namespace(text: &str, namespace: &str) -> Result<String> {
    let value = scalar(namespace)?;
    let text = text.replace(&format!("'{NAMESPACE}'"), &format!("'{namespace}'"));
    Ok(text.replace(&format!(": {NAMESPACE}\n"), &format!(": {value}\n")))
}

/// Returns a text as a value in YAML, in quotes if it would be read as another type.
fn scalar(text: &str) -> Result<String> {
    Ok(oarlock_controller::yaml::to_string(&text)?.trim_end().to_owned())
}

fn append(yaml: &mut String, document: &str) {
    yaml.push_str("---\n");
    yaml.push_str(document.trim_end());
    yaml.push('\n');
}

fn text(folder: &'static Dir<'static>, file: &str) -> Result<&'static str> {
    let found = folder.get_file(file).and_then(|file| file.contents_utf8());
    found.with_context(|| format!("this program does not carry {file}"))
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn objects(image: &str, namespace: &str) -> Vec<Value> {
        let yaml = manifest(&image.parse().unwrap(), &namespace.parse().unwrap()).unwrap();
        let documents = serde_norway::Deserializer::from_str(&yaml);
        documents.map(|document| Value::deserialize(document).unwrap()).collect()
    }

    #[test]
    fn namespace_and_image_are_replaced_everywhere_and_stay_text() {
        for (image, namespace) in [("oarlock:1", "controllers"), ("0000:1", "123"), ("null:1", "true")] {
            let objects = objects(image, namespace);
            let all = serde_json::to_string(&objects).unwrap();
            assert!(!all.contains(NAMESPACE), "{all}");
            let kind = |kind: &str| objects.iter().find(|it| it["kind"] == kind).unwrap();
            assert_eq!(kind("Namespace")["metadata"]["name"], namespace);
            assert_eq!(kind("ServiceAccount")["metadata"]["namespace"], namespace);
            assert_eq!(kind("ClusterRoleBinding")["subjects"][0]["namespace"], namespace);
            let container = &kind("Deployment")["spec"]["template"]["spec"]["containers"][0];
            assert_eq!(container["image"], image);
            let variable = &kind("ValidatingAdmissionPolicy")["spec"]["variables"][0];
            assert_eq!(variable["expression"], format!("'{namespace}'"));
        }
    }

    #[test]
    fn definitions_and_the_namespace_come_before_what_needs_them() {
        let objects = objects("oarlock:1", NAMESPACE);
        let place = |kind: &str| objects.iter().position(|it| it["kind"] == kind).unwrap();
        assert_eq!(place("Namespace"), 0);
        assert!(place("CustomResourceDefinition") < place("ValidatingAdmissionPolicy"));
        assert_eq!(place("Deployment"), objects.len() - 1);
        let definitions = objects.iter().filter(|it| it["kind"] == "CustomResourceDefinition");
        let names: Vec<_> = definitions.map(|it| it["metadata"]["name"].as_str().unwrap()).collect();
        assert_eq!(names, ["clusterplugins.oarlock.dev", "plugins.oarlock.dev"]);
    }
}

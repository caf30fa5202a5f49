//! The bill of materials of the image, as CycloneDX 1.6: the crates that the binary is built of, and the
//! libraries of the system.
//!
//! It has no serial number and no time of its own, so that equal sources have equal bytes.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::libraries::{self, Library};
use super::root::sha256;
use super::source::Source;
use crate::cargo;
use crate::toolchain::command;

/// The media type of the document.
pub(super) const MEDIA_TYPE: &str = "application/vnd.cyclonedx+json";

/// Returns the document.
pub(super) fn cyclone_dx(source: &Source, libraries: &[Library]) -> Result<Vec<u8>> {
    let platform = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    let mut metadata = cargo::cargo("metadata");
    metadata.args(["--locked", "--format-version", "1", "--filter-platform", &platform]);
    let metadata: Value =
        serde_json::from_str(&command::output(&mut metadata)?).context("cargo did not print JSON")?;
    let mut document = document(&metadata, &source.created()?)?;
    let files = libraries.iter().map(component_of_library);
    document["components"].as_array_mut().context("components is a list")?.extend(files);
    document.sort_all_objects();
    Ok(serde_json::to_vec_pretty(&document)?)
}

/// Returns the document of what cargo says about the package `oarlock`.
fn document(metadata: &Value, time: &str) -> Result<Value> {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let packages: BTreeMap<String, Value> =
        list(&metadata["packages"]).into_iter().map(|it| (text(&it["id"]), it)).collect();
    let nodes: BTreeMap<String, Value> =
        list(&metadata["resolve"]["nodes"]).into_iter().map(|it| (text(&it["id"]), it)).collect();
    let (root, _) = packages.iter().find(|(_, it)| it["name"] == "oarlock").context("no package oarlock")?;

    let mut dependencies: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut pending = vec![root.clone()];
    while let Some(id) = pending.pop() {
        if dependencies.contains_key(&id) {
            continue;
        }
        let node = nodes.get(&id).with_context(|| format!("cargo metadata has no node {id}"))?;
        // Those of tests and build scripts are not in the binary.
        let is_linked = |it: &Value| list(&it["dep_kinds"]).iter().any(|kind| kind["kind"].is_null());
        let needed: BTreeSet<_> =
            list(&node["deps"]).iter().filter(|it| is_linked(it)).map(|it| text(&it["pkg"])).collect();
        pending.extend(needed.iter().cloned());
        dependencies.insert(id, needed);
    }

    let reference = |id: &str| packages.get(id).map(reference).unwrap_or_default();
    let components: Vec<_> = dependencies
        .keys()
        .filter(|id| *id != root)
        .filter_map(|id| packages.get(id))
        .map(|it| component(it, "library"))
        .collect();
    let relations: Vec<_> = dependencies
        .iter()
        .map(|(id, needed)| json!({"ref": reference(id), "dependsOn": needed.iter().map(|it| reference(it)).collect::<Vec<_>>()}))
        .collect();
    Ok(json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"timestamp": time, "component": component(&packages[root], "application")},
        "components": components,
        "dependencies": relations,
    }))
}

fn component(package: &Value, kind: &str) -> Value {
    let reference = reference(package);
    let mut component = json!({
        "type": kind,
        "bom-ref": reference,
        "name": package["name"],
        "version": package["version"],
        "purl": reference,
    });
    if let Some(license) = package["license"].as_str() {
        // Old manifests write `/` for OR, which SPDX does not know.
        component["licenses"] = json!([{"expression": license.replace('/', " OR ")}]);
    }
    component
}

/// Returns the package URL of a crate.
fn reference(package: &Value) -> String {
    let name = package["name"].as_str().unwrap_or_default();
    let version = package["version"].as_str().unwrap_or_default().replace('+', "%2B");
    format!("pkg:cargo/{name}@{version}")
}

fn component_of_library(library: &Library) -> Value {
    let path = library.path.display().to_string();
    let mut component = json!({
        "type": "file",
        "bom-ref": format!("file:{path}"),
        "name": path,
        "hashes": [{"alg": "SHA-256", "content": sha256(&library.bytes)}],
    });
    if let Some((package, version)) = libraries::package(library) {
        let url = format!("pkg:deb/debian/{package}@{}", version.replace('+', "%2B").replace(':', "%3A"));
        component["purl"] = url.into();
        component["version"] = version.into();
    }
    component
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_document_names_what_is_linked_and_nothing_else() {
        let package = |name: &str, license: &str| json!({"id": name, "name": name, "version": "1.0.0+a", "license": license});
        let dependency = |name: &str, kind: Value| json!({"pkg": name, "dep_kinds": [{"kind": kind}]});
        let metadata = json!({
            "packages": [
                package("oarlock", "Apache-2.0"),
                package("kube", "Apache-2.0"),
                package("serde", "MIT/Apache-2.0"),
                package("insta", "MIT"),
                package("cc", "MIT"),
            ],
            "resolve": {"nodes": [
                {"id": "oarlock", "deps": [dependency("kube", Value::Null), dependency("insta", "dev".into())]},
                {"id": "kube", "deps": [dependency("serde", Value::Null), dependency("cc", "build".into())]},
                {"id": "serde", "deps": []},
            ]},
        });
        let document = document(&metadata, "2026-01-01T00:00:00Z").unwrap();
        assert_eq!(document["metadata"]["component"]["name"], "oarlock");
        let names: Vec<_> = document["components"]
            .as_array()
            .unwrap()
            .iter()
            .map(|it| it["name"].as_str().unwrap())
            .collect();
        assert_eq!(names, ["kube", "serde"]);
        assert_eq!(document["components"][1]["licenses"][0]["expression"], "MIT OR Apache-2.0");
        assert_eq!(
            document["dependencies"],
            json!([
                {"ref": "pkg:cargo/kube@1.0.0%2Ba", "dependsOn": ["pkg:cargo/serde@1.0.0%2Ba"]},
                {"ref": "pkg:cargo/oarlock@1.0.0%2Ba", "dependsOn": ["pkg:cargo/kube@1.0.0%2Ba"]},
                {"ref": "pkg:cargo/serde@1.0.0%2Ba", "dependsOn": []},
            ])
        );
    }
}

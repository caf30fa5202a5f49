//! `cargo xtask tidy`: the house's rules that no lint knows.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::checkout;
use crate::toolchain::command;

/// Checks the house's rules that no lint knows.
#[derive(clap::Args)]
pub(crate) struct Args {}

/// Lines after which a Rust file has more than one idea in it.
const LONGEST: usize = 700;

/// Crates, and what must not be in their manifests.
const ARROWS: [(&str, &[&str]); 9] = [
    (
        "host/json",
        &["kube", "k8s-openapi", "wasmtime", "oarlock-informer", "oarlock-plugin", "oarlock-controller"],
    ),
    ("host/informer", &["wasmtime", "oarlock-plugin", "oarlock-controller", "oarlock-dev-cluster"]),
    (
        "host/flow-control",
        &["kube", "k8s-openapi", "wasmtime", "oarlock-informer", "oarlock-plugin", "oarlock-controller"],
    ),
    ("host/event-recorder", &["wasmtime", "oarlock-informer", "oarlock-plugin", "oarlock-controller"]),
    (
        "host/leader-election",
        &["wasmtime", "oarlock-informer", "oarlock-plugin", "oarlock-controller", "oarlock-event-recorder"],
    ),
    (
        "host/label-selector",
        &["kube", "k8s-openapi", "wasmtime", "oarlock-informer", "oarlock-plugin", "oarlock-controller"],
    ),
    (
        "host/plugin",
        &["kube", "k8s-openapi", "oarlock-informer", "oarlock-controller", "oarlock-dev-cluster"],
    ),
    ("host/dev-cluster", &["kube", "wasmtime", "oarlock-informer", "oarlock-plugin", "oarlock-controller"]),
    ("guest-sdk/rust", &["kube", "wasmtime", "oarlock-informer", "oarlock-plugin", "oarlock-controller"]),
];

// === impl Args ===

impl Args {
    pub(crate) fn run(self) -> Result<()> {
        let Self {} = self;
        check()
    }
}

/// Checks every rule and says all that is wrong.
pub(crate) fn check() -> Result<()> {
    let mut faults = Vec::new();
    for file in tracked("*.rs")? {
        let path = checkout::root().join(&file);
        let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        faults.extend(file_faults(&file, &text));
    }
    for (krate, forbidden) in ARROWS {
        let manifest = checkout::root().join(krate).join("Cargo.toml");
        let text =
            fs::read_to_string(&manifest).with_context(|| format!("cannot read {}", manifest.display()))?;
        faults.extend(manifest_faults(krate, forbidden, &text));
    }
    faults.extend(lockfile_faults()?);
    let map = fs::read_to_string(checkout::root().join("ARCHITECTURE.md"))
        .context("cannot read ARCHITECTURE.md")?;
    faults.extend(map_faults(&map, |path| checkout::root().join(path).exists()));
    if !faults.is_empty() {
        bail!("the house is not tidy:\n  {}", faults.join("\n  "));
    }
    Ok(())
}

fn tracked(pattern: &str) -> Result<Vec<PathBuf>> {
    let mut git = std::process::Command::new("git");
    let files = command::output(git.current_dir(checkout::root()).args(["ls-files", pattern]))?;
    Ok(files.lines().map(PathBuf::from).filter(|file| checkout::root().join(file).exists()).collect())
}

fn file_faults(file: &Path, text: &str) -> Vec<String> {
    let mut faults = Vec::new();
    let shown = file.display();
    let lines = text.lines().count();
    if lines > LONGEST {
        faults.push(format!("{shown}: {lines} lines; above {LONGEST} there is more than one idea in it"));
    }
    if file.file_name().is_some_and(|name| name == "mod.rs") {
        faults.push(format!("{shown}: modules are foo.rs beside foo/"));
    }
    let is_tests = file
        .components()
        .any(|part| ["tests.rs", "tests", "it"].iter().any(|name| part.as_os_str() == *name));
    if !is_tests && !text.starts_with("//!") {
        faults.push(format!("{shown}: the first line says what the file is (//!)"));
    }
    faults
}

fn manifest_faults(krate: &str, forbidden: &[&str], manifest: &str) -> Vec<String> {
    let names = manifest.lines().map(|line| line.split(['.', '=', ' ']).next().unwrap_or_default());
    let bad = names.filter(|name| forbidden.contains(name));
    bad.map(|name| format!("{krate}/Cargo.toml: must not depend on {name}: arrows go one way")).collect()
}

/// Lock files name packages, not where one machine happened to get them from.
fn lockfile_faults() -> Result<Vec<String>> {
    let mut faults = Vec::new();
    for file in tracked("*package-lock.json")? {
        let text = fs::read_to_string(checkout::root().join(&file))?;
        if text.contains("\"resolved\": \"http") {
            faults.push(format!("{}: names a registry's host", file.display()));
        }
    }
    Ok(faults)
}

/// The map names places; each of them is there.
fn map_faults(map: &str, exists: impl Fn(&str) -> bool) -> Vec<String> {
    let quoted = map.split('`').skip(1).step_by(2);
    let places = quoted.filter(|text| text.contains('/') && !text.contains(['…', ' ', ':']));
    places
        .filter(|place| !exists(place))
        .map(|place| format!("ARCHITECTURE.md: there is no {place}"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_arrow_the_wrong_way_is_found() {
        let manifest =
            "[dependencies]\nkube.workspace = true\nkube-core = \"5\"\nwasmtime = { workspace = true }\n";
        let faults = manifest_faults("host/plugin", &["kube", "wasmtime"], manifest);
        assert_eq!(faults.len(), 2, "{faults:?}");
    }

    #[test]
    fn a_place_that_is_not_there_is_found() {
        let map = "`host/src/main.rs` calls `run` in `host/src/gone.rs`, see `promise_2_…`";
        assert_eq!(
            map_faults(map, |path| path.ends_with("main.rs")),
            ["ARCHITECTURE.md: there is no host/src/gone.rs"]
        );
    }

    #[test]
    fn a_long_headless_file_is_found() {
        let faults = file_faults(Path::new("host/src/mod.rs"), &"\n".repeat(701));
        assert_eq!(faults.len(), 3, "{faults:?}");
    }
}

//! `cargo xtask tidy`: the rules of this repository that no lint knows.
//!
//! Here are the rules for manifests, lock files and ARCHITECTURE.md. The others: [`source`] for one file's
//! shape, [`clauses`] for the codes of docs/informer-semantics.md, [`limits`] for the tests of
//! docs/limits.md, [`docs`] for links and generated pages, [`words`] for words that the glossary bans,
//! [`commits`] for commit subjects.

mod clauses;
mod commits;
mod limits;
mod source;
mod words;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::toolchain::command;
use crate::{checkout, docs};

/// Checks the rules of this repository that no lint knows.
#[derive(clap::Args)]
pub(crate) struct Args {}

/// Crates, and the dependencies that their manifests must not have.
const ARROWS: [(&str, &[&str]); 12] = [
    (
        "host/component-source",
        &["kube", "k8s-openapi", "wasmtime", "oarlock-informer", "oarlock-plugin", "oarlock-controller"],
    ),
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
    (
        "host/record-format",
        &["kube", "k8s-openapi", "wasmtime", "oarlock-informer", "oarlock-plugin", "oarlock-controller"],
    ),
    (
        "host/guest-build",
        &["kube", "wasmtime", "oarlock-informer", "oarlock-plugin", "oarlock-controller", "clap", "tokio"],
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

/// Checks every rule and reports all faults.
pub(crate) fn check() -> Result<()> {
    let architecture = read(Path::new("ARCHITECTURE.md"))?;
    let semantics = read(Path::new(clauses::PAGE))?;
    let clauses = clauses::Clauses::parse(&semantics)?;
    let words = words::BannedWords::parse(&architecture)?;

    let mut limits = limits::Tests::parse(&read(Path::new(limits::PAGE))?)?;

    let mut faults = Vec::new();
    for file in tracked(&[])? {
        // Not text: a picture, a dictionary, a corpus of the fuzzer.
        let Ok(text) = fs::read_to_string(checkout::root().join(&file)) else { continue };
        faults.extend(source::faults(&file, &text));
        faults.extend(clauses.faults(&file, &text));
        faults.extend(words.faults(&file, &text));
        limits.look_in(&file, &text);
    }
    for (krate, forbidden) in ARROWS {
        faults.extend(manifest_faults(krate, forbidden, &read(&Path::new(krate).join("Cargo.toml"))?));
    }
    faults.extend(limits.faults());
    faults.extend(lockfile_faults()?);
    faults.extend(map_faults(&architecture, |path| checkout::root().join(path).exists()));
    faults.extend(docs::faults()?);
    faults.extend(commits::faults()?);
    if !faults.is_empty() {
        bail!("{} faults:\n  {}", faults.len(), faults.join("\n  "));
    }
    Ok(())
}

fn read(file: &Path) -> Result<String> {
    fs::read_to_string(checkout::root().join(file)).with_context(|| format!("cannot read {}", file.display()))
}

/// Returns the files that git tracks, of these patterns or all, without those that were deleted and not
/// committed yet.
pub(crate) fn tracked(patterns: &[&str]) -> Result<Vec<PathBuf>> {
    let mut git = std::process::Command::new("git");
    let files = command::output(git.current_dir(checkout::root()).arg("ls-files").args(patterns))?;
    Ok(files.lines().map(PathBuf::from).filter(|file| checkout::root().join(file).is_file()).collect())
}

fn manifest_faults(krate: &str, forbidden: &[&str], manifest: &str) -> Vec<String> {
    let names = manifest.lines().map(|line| line.split(['.', '=', ' ']).next().unwrap_or_default());
    let bad = names.filter(|name| forbidden.contains(name));
    bad.map(|name| format!("{krate}/Cargo.toml: must not depend on {name}: arrows go one way")).collect()
}

/// Checks that lock files name packages, and no registry of one machine.
fn lockfile_faults() -> Result<Vec<String>> {
    let mut faults = Vec::new();
    for file in tracked(&["*package-lock.json"])? {
        let text = fs::read_to_string(checkout::root().join(&file))?;
        if text.contains("\"resolved\": \"http") {
            faults.push(format!("{}: names a registry's host", file.display()));
        }
    }
    Ok(faults)
}

/// Checks that each path in ARCHITECTURE.md exists.
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
    fn a_forbidden_dependency_is_found() {
        let manifest =
            "[dependencies]\nkube.workspace = true\nkube-core = \"5\"\nwasmtime = { workspace = true }\n";
        let faults = manifest_faults("host/plugin", &["kube", "wasmtime"], manifest);
        assert_eq!(faults.len(), 2, "{faults:?}");
    }

    #[test]
    fn a_path_that_does_not_exist_is_found() {
        let map = "`host/src/main.rs` calls `run` in `host/src/gone.rs`, see `promise_2_…`";
        assert_eq!(
            map_faults(map, |path| path.ends_with("main.rs")),
            ["ARCHITECTURE.md: there is no host/src/gone.rs"]
        );
    }
}

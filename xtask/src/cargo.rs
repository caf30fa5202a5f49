//! Cargo, as `cargo xtask` itself was started by it.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::checkout;
use crate::toolchain::command;

/// A built test binary.
pub(crate) struct TestBinary {
    /// The package that it tests.
    pub(crate) package: String,
    /// The target's name, such as `it` or the crate's.
    pub(crate) target: String,
    pub(crate) is_library: bool,
    pub(crate) executable: PathBuf,
    /// The package's folder, in which cargo would run it.
    pub(crate) folder: PathBuf,
}

/// A target of the workspace that has tests.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    pub(crate) package: String,
    pub(crate) name: String,
    pub(crate) is_library: bool,
    /// The file that the target begins with.
    pub(crate) root: PathBuf,
}

// === impl TestBinary ===

impl TestBinary {
    /// Returns what stands before the names of its tests to tell them from those of other binaries.
    pub(crate) fn prefix(&self) -> String {
        prefix(&self.package, &self.target, self.is_library)
    }
}

// === impl Target ===

impl Target {
    /// Returns what stands before the names of its tests to tell them from those of other targets.
    pub(crate) fn prefix(&self) -> String {
        prefix(&self.package, &self.name, self.is_library)
    }
}

/// Returns cargo, to be run at the checkout's root. One selection of packages for everything, so that nothing is built twice for
/// the sake of other features; nor for the sake of what `cargo run` says of xtask, which build scripts would take for news.
pub(crate) fn cargo(subcommand: &str) -> Command {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    for (name, _) in std::env::vars_os() {
        let is_of_xtask = name
            .to_str()
            .is_some_and(|name| name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_"));
        if is_of_xtask {
            cargo.env_remove(name);
        }
    }
    cargo.current_dir(checkout::root()).arg(subcommand);
    cargo
}

/// Builds the host and what else is a program.
pub(crate) fn build_programs() -> Result<()> {
    run(cargo("build").args(["--workspace", "--bins"]))
}

/// Builds the tests, and the programs that some of them run, and returns the tests' binaries.
pub(crate) fn build_tests() -> Result<Vec<TestBinary>> {
    let mut cargo = cargo("build");
    cargo.args(["--workspace", "--all-targets", "--message-format", "json-render-diagnostics"]);
    let output = cargo.stdin(Stdio::null()).stderr(Stdio::inherit()).output().context("cannot run cargo")?;
    if !output.status.success() {
        bail!("the tests do not compile: see above");
    }
    let mut binaries = Vec::new();
    for line in output.stdout.split(|&byte| byte == b'\n').filter(|line| !line.is_empty()) {
        let message: Value = serde_json::from_slice(line).context("cargo printed what is no JSON")?;
        binaries.extend(test_binary(&message));
    }
    Ok(binaries)
}

fn test_binary(message: &Value) -> Option<TestBinary> {
    if message["reason"] != "compiler-artifact" || message["profile"]["test"] != true {
        return None;
    }
    let manifest = PathBuf::from(message["manifest_path"].as_str()?);
    let folder = manifest.parent()?.to_owned();
    let package = message["package_id"].as_str()?;
    // `path+file:///…/host/informer#oarlock-informer@0.1.0`, or `…/xtask#0.1.0` where folder and package share their name.
    let (place, id) = package.rsplit_once('#')?;
    let package = match id.split_once('@') {
        Some((name, _)) => name.to_owned(),
        None => place.rsplit('/').next()?.to_owned(),
    };
    Some(TestBinary {
        package,
        target: message["target"]["name"].as_str()?.to_owned(),
        is_library: is_library(&message["target"]),
        executable: message["executable"].as_str()?.into(),
        folder,
    })
}

/// Returns the targets whose tests `cargo test` runs.
pub(crate) fn test_targets() -> Result<Vec<Target>> {
    let metadata = command::output(cargo("metadata").args(["--no-deps", "--format-version", "1"]))?;
    let metadata: Value = serde_json::from_str(&metadata).context("cargo printed what is no JSON")?;
    let mut targets = Vec::new();
    for package in metadata["packages"].as_array().into_iter().flatten() {
        let with_tests =
            package["targets"].as_array().into_iter().flatten().filter(|target| target["test"] == true);
        for target in with_tests {
            targets.push(Target {
                package: package["name"].as_str().context("a package has a name")?.to_owned(),
                name: target["name"].as_str().context("a target has a name")?.to_owned(),
                is_library: is_library(target),
                root: target["src_path"].as_str().context("a target has a root")?.into(),
            });
        }
    }
    Ok(targets)
}

/// Tests of a library are named by its package alone, all others by their target too.
fn prefix(package: &str, target: &str, is_library: bool) -> String {
    if is_library { format!("{package} ") } else { format!("{package} {target}::") }
}

fn is_library(target: &Value) -> bool {
    target["kind"].as_array().is_some_and(|kinds| kinds.iter().any(|kind| kind == "lib"))
}

/// Runs a command whose output is for people to see.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let status = command.stdin(Stdio::null()).status().with_context(|| format!("cannot run {command:?}"))?;
    if !status.success() {
        bail!("{command:?} failed: {status}");
    }
    Ok(())
}

//! Runs cargo, the one that runs `cargo xtask`.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::checkout;
use crate::lint::Lints;
use crate::toolchain::command;

/// A built test binary.
pub(crate) struct TestBinary {
    /// The package of the tests.
    pub(crate) package: String,
    /// The target's name, such as `it` or the crate's name.
    pub(crate) target: String,
    pub(crate) is_library: bool,
    pub(crate) executable: PathBuf,
    /// The folder of the package, in which cargo runs tests.
    pub(crate) folder: PathBuf,
}

/// A target of the workspace with tests.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    pub(crate) package: String,
    pub(crate) name: String,
    pub(crate) is_library: bool,
    /// The root file of the target.
    pub(crate) root: PathBuf,
}

// === impl TestBinary ===

impl TestBinary {
    /// Returns the prefix that distinguishes its tests from those of other binaries.
    pub(crate) fn prefix(&self) -> String {
        prefix(&self.package, &self.target, self.is_library)
    }
}

// === impl Target ===

impl Target {
    /// Returns the prefix that distinguishes its tests from those of other targets.
    pub(crate) fn prefix(&self) -> String {
        prefix(&self.package, &self.name, self.is_library)
    }
}

/// Returns a cargo command in the checkout's root.
///
/// All callers select the same packages, since another selection has other features and builds everything
/// again.
pub(crate) fn cargo(subcommand: &str) -> Command {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.current_dir(checkout::root()).arg(subcommand);
    cargo
}

/// Builds all programs, including the host.
pub(crate) fn build_programs() -> Result<()> {
    run(cargo("build").args(["--workspace", "--bins"]))
}

/// Builds these programs, with the features that the whole workspace selects. With `--package` cargo would
/// select those of one package, and compile wasmtime again.
pub(crate) fn build_some(programs: &[&str], is_for_release: bool) -> Result<()> {
    let mut cargo = cargo("build");
    cargo.arg("--workspace").args(programs.iter().flat_map(|name| ["--bin", name]));
    run(cargo.args(is_for_release.then_some("--release")))
}

/// Builds an example, with the features that the whole workspace selects.
pub(crate) fn build_example(name: &str) -> Result<()> {
    run(cargo("build").args(["--workspace", "--example", name]))
}

/// Builds all tests and the programs that they run, and returns the test binaries.
pub(crate) fn build_tests(lints: Lints) -> Result<Vec<TestBinary>> {
    let mut cargo = cargo("build");
    cargo.args(["--workspace", "--all-targets", "--message-format", "json-render-diagnostics"]);
    lints.apply(&mut cargo)?;
    let output = cargo.stdin(Stdio::null()).stderr(Stdio::inherit()).output().context("cannot run cargo")?;
    if !output.status.success() {
        bail!("the tests do not compile; see the output above");
    }
    let mut binaries = Vec::new();
    for line in output.stdout.split(|&byte| byte == b'\n').filter(|line| !line.is_empty()) {
        let message: Value = serde_json::from_slice(line).context("cargo did not print JSON")?;
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
    // `path+file:///…/host/informer#oarlock-informer@0.1.0`, or `…/xtask#0.1.0` if the folder has the
    // package's name.
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
    let metadata: Value = serde_json::from_str(&metadata).context("cargo did not print JSON")?;
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

/// The prefix of a library's tests is its package; other targets add their name.
fn prefix(package: &str, target: &str, is_library: bool) -> String {
    if is_library { format!("{package} ") } else { format!("{package} {target}::") }
}

fn is_library(target: &Value) -> bool {
    target["kind"].as_array().is_some_and(|kinds| kinds.iter().any(|kind| kind == "lib"))
}

/// Runs a command, and shows its output.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let status = command.stdin(Stdio::null()).status().with_context(|| format!("cannot run {command:?}"))?;
    if !status.success() {
        bail!("{command:?} failed: {status}");
    }
    Ok(())
}

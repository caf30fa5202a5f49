//! Cargo, as `cargo xtask` itself was started by it.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::checkout;

/// A built test binary.
pub(crate) struct TestBinary {
    /// The package that it tests.
    pub(crate) package: String,
    /// The target's name, such as `it` or the crate's.
    pub(crate) target: String,
    pub(crate) executable: PathBuf,
    /// The package's folder, in which cargo would run it.
    pub(crate) folder: PathBuf,
}

/// Returns cargo, to be run at the checkout's root. One selection of packages for everything, so that nothing is built twice for
/// the sake of other features.
pub(crate) fn cargo(subcommand: &str) -> Command {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
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
        executable: message["executable"].as_str()?.into(),
        folder,
    })
}

/// Runs a command whose output is for people to see.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let status = command.stdin(Stdio::null()).status().with_context(|| format!("cannot run {command:?}"))?;
    if !status.success() {
        bail!("{command:?} failed: {status}");
    }
    Ok(())
}

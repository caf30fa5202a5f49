//! Tools of the ecosystem that tests use: crane, helm, kustomize and the definitions of the Prometheus
//! operator, which `cargo xtask tool` provides.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, ensure};

use crate::host_process::checkout;

/// Returns the path of a tool, and builds it first if this machine has none. Skips the test if Go, in which
/// the tools are written, is missing.
///
/// # Errors
///
/// When it cannot be built.
pub fn path(name: &str) -> anyhow::Result<PathBuf> {
    oarlock_built_guests::needs("go");
    let output = Command::new(env!("CARGO"))
        .args(["xtask", "tool", name])
        .current_dir(checkout())
        .stderr(Stdio::inherit())
        .output()
        .with_context(|| format!("cannot run cargo xtask tool {name}"))?;
    ensure!(output.status.success(), "cargo xtask tool {name}: {}", output.status);
    let path = String::from_utf8(output.stdout).context("cargo xtask tool printed no text")?;
    Ok(path.trim_end_matches('\n').into())
}

/// Runs a program to its end, and returns its standard output.
///
/// # Errors
///
/// When it fails; the error has its standard error.
pub fn output(command: &mut Command) -> anyhow::Result<String> {
    let shown = format!("{command:?}");
    let output = command.stdin(Stdio::null()).output().with_context(|| format!("cannot run {shown}"))?;
    let stderr = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{shown}: {}\n{stderr}", output.status);
    String::from_utf8(output.stdout).with_context(|| format!("{shown} printed no text"))
}

//! Runs the binary `oarlock` to its end.

use std::path::Path;
use std::process::{Command, Output};

use anyhow::{Context, ensure};
use oarlock_tests::host_process::binary;

/// Runs `oarlock` in a folder.
pub(crate) fn oarlock(folder: &Path, arguments: &[&str]) -> anyhow::Result<Output> {
    Command::new(binary("oarlock")?)
        .current_dir(folder)
        .args(arguments)
        .output()
        .context("cannot run oarlock")
}

/// Runs `oarlock` in a folder, which must succeed, and returns what it wrote.
pub(crate) fn written(folder: &Path, arguments: &[&str]) -> anyhow::Result<String> {
    let output = oarlock(folder, arguments)?;
    let written = [output.stdout, output.stderr].map(|it| String::from_utf8_lossy(&it).into_owned()).concat();
    ensure!(output.status.success(), "oarlock {arguments:?} failed: {written}");
    Ok(written)
}

/// Returns what `oarlock`, which must fail with this exit code, wrote to standard error.
pub(crate) fn refused(folder: &Path, arguments: &[&str], code: i32) -> anyhow::Result<String> {
    let output = oarlock(folder, arguments)?;
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    ensure!(output.status.code() == Some(code), "{:?} of oarlock {arguments:?}: {errors}", output.status);
    Ok(errors)
}

//! Runs `wit-tool`, a crate of this workspace that is compiled when a guest first needs it.

use std::ffi::OsStr;
use std::process::Command;

use anyhow::{Context, Result};

use super::command;
use crate::checkout;

/// Runs it for a world of the contract.
pub(crate) fn run<'a>(world: &str, arguments: impl IntoIterator<Item = &'a OsStr>) -> Result<()> {
    let mut cargo = Command::new("cargo");
    cargo.current_dir(checkout::root()).args(["run", "--quiet", "--package", "wit-tool", "--"]);
    cargo.arg("--wit").arg(checkout::wit()).args(["--world", world]).args(arguments);
    command::run(&mut cargo).context("the bindings generator")
}

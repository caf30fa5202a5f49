//! Runs `wit-tool`, a crate of this workspace, which is compiled when a guest needs it first.

use std::ffi::OsStr;
use std::process::Command;

use anyhow::{Context, Result};

use super::command;
use crate::{checkout, progress};

/// Compiles the tool if it is out of date.
pub(crate) fn prepare() -> Result<()> {
    progress::step("the bindings generator", || command::run(&mut cargo("build")))
}

/// Runs the tool for a world of the WIT package.
pub(crate) fn run<'a>(world: &str, arguments: impl IntoIterator<Item = &'a OsStr>) -> Result<()> {
    let mut tool = cargo("run");
    tool.arg("--").arg("--wit").arg(checkout::wit()).args(["--world", world]).args(arguments);
    command::run(&mut tool).context("the bindings generator")
}

fn cargo(subcommand: &str) -> Command {
    let mut cargo = Command::new("cargo");
    cargo.current_dir(checkout::root()).args([subcommand, "--quiet", "--package", "wit-tool"]);
    cargo
}

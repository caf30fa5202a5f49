//! `cargo xtask test --node`: the tests that need a real node (`tests/node/cluster`).

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::cargo::{self, TestBinary};
use crate::tool::Tool;
use crate::{checkout, guests, image, progress};

use super::summary::Summary;

/// The variable with which the tests run.
const ENABLED: &str = "OARLOCK_NODE_TESTS";

/// Runs the tests, or says why this machine cannot run them.
pub(super) fn run(filter: Option<&str>, previous: Option<&Path>) -> Result<()> {
    if let Some(lack) = oarlock_node::lacks() {
        progress::say(format!("SKIPPED the tests that need a real node: {lack}"));
        return Ok(());
    }
    let mut command = prepare(previous)?;
    command.args(filter);
    let mut summary = Summary::default();
    super::run_suite(&mut summary, "a real node", &mut command)?;
    super::print_out(&summary.to_string());
    if !summary.is_success() {
        bail!("tests failed; see the summary above");
    }
    Ok(())
}

/// Builds the node, the host and the tests, and returns the command that runs the tests.
pub(crate) fn prepare(previous: Option<&Path>) -> Result<Command> {
    oarlock_node::prepare(|| Tool::Crane.build())?;
    guests::build(&["mirror".to_owned()])?;
    let binaries = progress::step("the host and its tests", cargo::build_tests)?;
    let binary = binaries.iter().find(|binary| is_of_node(binary)).context("the tests were not built")?;
    let mut command = super::test_command(binary);
    command.env(ENABLED, "1").env("OARLOCK_NODE_CRANE", Tool::Crane.build()?);
    let host = checkout::program("oarlock")?;
    let images = [("OARLOCK_NODE_IMAGE", Some(host.as_path())), ("OARLOCK_NODE_PREVIOUS_IMAGE", previous)];
    for (variable, binary) in images {
        if let Some(binary) = binary {
            let folder = checkout::target()?.join("node").join(variable);
            image::write_for_tests(binary, &folder)?;
            command.env(variable, folder);
        }
    }
    Ok(command)
}

/// Returns whether a test binary needs a real node.
pub(super) fn is_of_node(binary: &TestBinary) -> bool {
    binary.package == "oarlock-node" && !binary.is_library
}

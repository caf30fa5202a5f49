//! `cargo xtask test --node`: the tests that need a real node (`tests/node/cluster`).

use std::path::{self, Path};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::cargo::{self, TestBinary};
use crate::lint::Lints;
use crate::tool::Tool;
use crate::{checkout, guests, image, previous, progress};

use super::summary::Summary;

/// The variable with which the tests run.
const ENABLED: &str = "OARLOCK_NODE_TESTS";

/// The plugins of these tests.
const GUESTS: [&str; 4] = ["configmap-generator", "hello-rust", "mirror", "traps"];

/// Runs the tests, or says why this machine cannot run them.
pub(super) fn run(filter: Option<&str>, previous: Option<&Path>, lints: Lints) -> Result<()> {
    if let Some(lack) = oarlock_node::lacks() {
        progress::say(format!("SKIPPED the tests that need a real node: {lack}"));
        return Ok(());
    }
    let mut command = prepare(previous, lints)?;
    command.args(filter);
    let mut summary = Summary::default();
    super::run_suite(&mut summary, "a real node", &mut command)?;
    super::print_out(&summary.to_string());
    if !summary.is_success() {
        bail!("tests failed; see the summary above");
    }
    Ok(())
}

/// Builds the node, the hosts and the tests, and returns the command that runs the tests. Without a program
/// of the version before, its pinned commit is built.
pub(crate) fn prepare(previous: Option<&Path>, lints: Lints) -> Result<Command> {
    oarlock_node::prepare(|| Tool::Crane.build())?;
    guests::build(&GUESTS.map(str::to_owned))?;
    let binaries = progress::step("the host and its tests", || cargo::build_tests(lints))?;
    let binary = binaries.iter().find(|binary| is_of_node(binary)).context("the tests were not built")?;
    let mut command = super::test_command(binary);
    command.env(ENABLED, "1").env("OARLOCK_NODE_CRANE", Tool::Crane.build()?);
    let mut add_image = |variable: &str, program: &Path| -> Result<()> {
        let folder = checkout::target()?.join("node").join(variable);
        image::write_for_tests(program, &folder)?;
        command.env(variable, folder);
        Ok(())
    };
    add_image("OARLOCK_NODE_IMAGE", &checkout::program("oarlock")?)?;
    let previous = match previous {
        Some(program) => Some(path::absolute(program)?),
        None => previous::program()?,
    };
    if let Some(program) = previous {
        add_image("OARLOCK_NODE_PREVIOUS_IMAGE", &program)?;
        command.env("OARLOCK_NODE_PREVIOUS_PROGRAM", program);
    }
    Ok(command)
}

/// Returns whether a test binary needs a real node.
pub(super) fn is_of_node(binary: &TestBinary) -> bool {
    binary.package == "oarlock-node" && !binary.is_library
}

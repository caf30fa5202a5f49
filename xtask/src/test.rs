//! `cargo xtask test`: builds and runs all tests, fast ones first, and prints a summary.

pub(crate) mod node;
mod summary;

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::thread;

use anyhow::{Context, Result, bail};
use oarlock_built_guests::set_missing;
use oarlock_guest_build::Language;

use crate::cargo::{self, TestBinary};
use crate::conformance::{self, UntestedCases};
use crate::guests::Ported;
use crate::lint::Lints;
use crate::missing::Missing;
use crate::tool::Tool;
use crate::{checkout, control_plane, docs, guests, progress, sdk, tidy};

use summary::Summary;

/// Builds and runs all tests, fast ones first.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Runs only tests whose name contains this text.
    #[arg(value_name = "FILTER")]
    filter: Option<String>,
    /// Lints the workspace with clippy while it is compiled. A warning is an error.
    #[arg(long)]
    lint: bool,
    /// Leaves out the controllers of others (`tests/ported`), whose builds take longest.
    #[arg(long, conflicts_with = "node")]
    skip_ported: bool,
    /// Runs the tests that need a real node, and no others. Needs root.
    #[arg(long)]
    node: bool,
    /// With `--node`: the binary of the host from which the upgrade starts. Otherwise it is built from a
    /// commit that is pinned.
    #[arg(long, value_name = "FILE", requires = "node")]
    previous: Option<PathBuf>,
}

/// Packages in order of the duration of their tests. Others follow, and then the [`LAST`] ones.
const ORDER: [&str; 5] =
    ["xtask", "oarlock-informer", "oarlock-dev-cluster", "oarlock-plugin", "oarlock-controller"];

/// The packages whose tests start a real API server, in order.
const LAST: [&str; 2] = ["oarlock", WHOLE];

/// The tests that start hosts and API servers.
const WHOLE: &str = "oarlock-tests";

// === impl Args ===

impl Args {
    pub(crate) fn run(self) -> Result<()> {
        let Self { filter, lint, skip_ported, node, previous } = self;
        let lints = if lint { Lints::Deny } else { Lints::Skip };
        if node {
            return node::run(filter.as_deref(), previous.as_deref(), lints);
        }
        let ported = if skip_ported { Ported::Skip } else { Ported::Build };
        tidy::check()?;
        conformance::check(UntestedCases::Fail)?;
        let missing = Missing::find()?;
        let filter = filter.as_deref();
        let mut summary = Summary::default();
        let ran = thread::scope(|scope| {
            let (built, guests_are_built) = mpsc::channel();
            let others = scope.spawn(move || {
                guests::build_all(&missing, ported)?;
                // The receiver is dropped if the host does not compile.
                let _ = built.send(());
                build_others(&missing, filter.is_none())
            });
            let binaries = progress::step("the host and its tests", || cargo::build_tests(lints))?;
            conformance::check_built(&binaries)?;
            docs::check_built()?;
            let (last, suites) = in_order(binaries);
            // Without guests, the thread ends with the error.
            if guests_are_built.recv().is_ok() {
                run_suites(&mut summary, &suites, filter, lints)?;
            }
            others.join().map_err(|_| anyhow::anyhow!("the build of the guests panicked"))??;
            run_binaries(&mut summary, &last, filter)
        });

        // Also of the suites that ran before an error.
        print_out(&summary.to_string());
        ran?;
        if !summary.is_success() {
            bail!("tests failed; see the summary above");
        }
        Ok(())
    }
}

/// Builds what only the last tests need, and checks the SDKs. Most of it is in Go. No test that runs
/// meanwhile may depend on the speed of the machine.
fn build_others(missing: &Missing, check_sdks: bool) -> Result<()> {
    if check_sdks {
        sdk::check(missing)?;
    }
    build_control_plane(missing)?;
    build_tools(missing)
}

/// Builds the real API server, whose sources are in Go.
fn build_control_plane(missing: &Missing) -> Result<()> {
    let lack = missing.of(Language::Go).filter(|_| !matches!(control_plane::is_built(), Ok(true)));
    let lack = lack.map(|lack| format!("the real API server: {lack}"));
    set_missing(&checkout::guests(), "control-plane", lack.as_deref())?;
    match lack {
        Some(lack) => progress::say(format!("SKIPPED {lack}")),
        None => drop(control_plane::build()?),
    }
    Ok(())
}

/// Builds the tools that tests use. Without Go, these tests are skipped.
fn build_tools(missing: &Missing) -> Result<()> {
    if missing.has(Language::Go) {
        Tool::ALL.iter().try_for_each(|tool| tool.build().map(drop))?;
    }
    Ok(())
}

/// Returns the tests of the [`LAST`] packages, and the others, fast ones first. Leaves out those that need a
/// node.
fn in_order(mut binaries: Vec<TestBinary>) -> (Vec<TestBinary>, Vec<TestBinary>) {
    binaries.retain(|binary| !node::is_of_node(binary));
    let place = |names: &[&str], binary: &TestBinary| names.iter().position(|name| *name == binary.package);
    binaries.sort_by_key(|binary| (place(&LAST, binary), place(&ORDER, binary).unwrap_or(ORDER.len())));
    binaries.into_iter().partition(|binary| LAST.contains(&&*binary.package))
}

/// Runs all tests but those of the [`LAST`] packages.
fn run_suites(
    summary: &mut Summary,
    binaries: &[TestBinary],
    filter: Option<&str>,
    lints: Lints,
) -> Result<()> {
    for (name, folder) in [("guest-sdk", "guest-sdk/rust"), ("plugins", "plugins")] {
        let mut command = native_guest_tests(&checkout::root().join(folder));
        run_suite(summary, name, command.args(filter))?;
    }
    run_binaries(summary, binaries, filter)?;
    run_suite(summary, "interleavings", interleavings()?.args(filter))?;
    let mut doc_tests = cargo::cargo("test");
    doc_tests.args(["--workspace", "--doc"]);
    // As in the build of the tests: cargo compiles again what another program compiled.
    lints.apply(&mut doc_tests)?;
    run_suite(summary, "documentation", doc_tests.args(filter))
}

fn run_binaries(summary: &mut Summary, binaries: &[TestBinary], filter: Option<&str>) -> Result<()> {
    for binary in binaries {
        let mut command = test_command(binary);
        let name = format!("{} {}", binary.package, binary.target);
        run_suite(summary, &name, command.args(filter))?;
    }
    Ok(())
}

/// Tests the parts of guests that need no host.
fn native_guest_tests(workspace: &Path) -> Command {
    let mut cargo = cargo::cargo("test");
    cargo.current_dir(workspace).args(["--workspace", "--lib", "--locked"]);
    cargo.env("CARGO_TARGET_DIR", checkout::guest_build("native"));
    cargo
}

/// Tests the informer's locks and notifications under shuttle, a scheduler that explores interleavings.
fn interleavings() -> Result<Command> {
    let mut cargo = cargo::cargo("test");
    cargo.current_dir(checkout::root().join("host/informer/shuttle"));
    cargo.args(["--locked", "--target-dir"]).arg(checkout::target()?).arg("--");
    Ok(cargo)
}

fn test_command(binary: &TestBinary) -> Command {
    let mut command = Command::new(&binary.executable);
    command.current_dir(&binary.folder);
    command.env("CARGO_MANIFEST_DIR", &binary.folder);
    if binary.package == WHOLE {
        // Each test starts API servers and hosts, which would slow each other down.
        command.arg("--test-threads=1");
    }
    command
}

/// Runs one suite, shows its output, and adds its result to the summary.
fn run_suite(summary: &mut Summary, name: &str, command: &mut Command) -> Result<()> {
    progress::say(format!("testing {name}"));
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot run the tests of {name}"))?;
    let stdout = child.stdout.take().context("stdout is piped")?;
    let suite = summary.begin(name);
    for line in BufReader::new(stdout).lines() {
        let line = line?;
        print_out(&line);
        suite.read(&line);
    }
    let status = child.wait()?;
    suite.end(status.success());
    Ok(())
}

#[expect(clippy::print_stdout, reason = "the tests' own output and its summary")]
fn print_out(text: &str) {
    println!("{text}");
}

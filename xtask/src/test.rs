//! `cargo xtask test`: sets up and runs every test, fast ones first, and ends with a summary.

mod summary;

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;

use anyhow::{Context, Result, bail};

use crate::cargo::{self, TestBinary};
use crate::conformance::{self, Holes};
use crate::{checkout, control_plane, guests, progress, tidy};

use summary::Summary;

/// Sets up and runs every test, fast ones first.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Runs only tests whose name contains this.
    #[arg(value_name = "FILTER")]
    filter: Option<String>,
}

/// Packages by how long their tests take, fast ones first. What is not here comes before `oarlock`.
const ORDER: [&str; 7] = [
    "xtask",
    "oarlock-informer",
    "oarlock-dev-cluster",
    "oarlock-plugin",
    "oarlock-controller",
    "oarlock",
    "oarlock-tests",
];

// === impl Args ===

impl Args {
    pub(crate) fn run(self) -> Result<()> {
        let Self { filter } = self;
        tidy::check()?;
        conformance::check(Holes::Fail)?;
        // What is downloaded and what is compiled hardly get in each other's way.
        let (guests, binaries) = thread::scope(|scope| {
            let guests = scope.spawn(|| {
                guests::build(&[])?;
                control_plane::build().map(drop)
            });
            let binaries = progress::step("the host and its tests", cargo::build_tests);
            (guests.join(), binaries)
        });
        let mut binaries = binaries?;
        conformance::check_built(&binaries)?;
        guests.map_err(|_| anyhow::anyhow!("the build of the guests panicked"))??;
        binaries.sort_by_key(|binary| {
            ORDER.iter().position(|name| *name == binary.package).unwrap_or(ORDER.len() - 2)
        });

        let mut summary = Summary::default();
        for (name, folder) in [("guest-sdk", "guest-sdk/rust"), ("plugins", "plugins")] {
            let mut command = native_guest_tests(&checkout::root().join(folder));
            run_suite(&mut summary, name, command.args(filter.as_slice()))?;
        }
        for binary in &binaries {
            let mut command = test_command(binary);
            run_suite(
                &mut summary,
                &format!("{} {}", binary.package, binary.target),
                command.args(filter.as_slice()),
            )?;
        }
        run_suite(&mut summary, "interleavings", interleavings()?.args(filter.as_slice()))?;
        let mut doc_tests = cargo::cargo("test");
        doc_tests.args(["--workspace", "--doc"]);
        run_suite(&mut summary, "documentation", doc_tests.args(filter.as_slice()))?;

        print_out(&summary.to_string());
        if !summary.is_success() {
            bail!("tests failed: see above");
        }
        Ok(())
    }
}

/// What of a guest needs no host is tested like any Rust.
fn native_guest_tests(workspace: &Path) -> Command {
    let mut cargo = cargo::cargo("test");
    cargo.current_dir(workspace).args(["--workspace", "--lib", "--locked"]);
    cargo.env("CARGO_TARGET_DIR", checkout::guest_build("native"));
    cargo
}

/// The informer's locks and notifications under a scheduler that tries interleavings.
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
    if binary.package == "oarlock-tests" {
        // Each starts whole API servers and hosts: they would only get in each other's way.
        command.arg("--test-threads=1");
    }
    command
}

/// Runs one suite, shows what it prints and counts what it says in its closing lines.
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

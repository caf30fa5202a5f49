//! `cargo xtask soak mutants` and `cargo xtask soak swaps`: the tests of plugins that take longer than
//! `cargo xtask test` should.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use super::Record;
use crate::lint::Lints;
use crate::{cargo, checkout, guests, progress};

/// The file of results.
const FILE: &str = "soak-plugins.jsonl";

/// Runs mutated components in a host with three good plugins; records what the host did with them.
#[derive(clap::Args)]
pub(crate) struct MutantsArgs {
    /// The number of mutants.
    #[arg(long, default_value_t = 10_000)]
    count: u64,
    /// The seed of the first mutant.
    #[arg(long, default_value_t = 1)]
    from: u64,
    /// Runs this binary of the host, such as a released one, instead of building one.
    #[arg(long, value_name = "FILE")]
    host: Option<PathBuf>,
}

/// Swaps two plugins again and again while events flow; records whether nothing was lost.
#[derive(clap::Args)]
pub(crate) struct SwapsArgs {
    /// The number of swaps of each plugin.
    #[arg(long, default_value_t = 200)]
    count: u64,
    /// The number of changes that are written during each swap, at least.
    #[arg(long, default_value_t = 2_000)]
    changes: u64,
    /// The number of changes a second. Fewer are a failure.
    #[arg(long, default_value_t = 5_000)]
    rate: u32,
    /// Swaps plugins in this binary of the host, such as a released one, instead of the one that is built for
    /// tests.
    #[arg(long, value_name = "FILE")]
    host: Option<PathBuf>,
}

// === impl MutantsArgs ===

impl MutantsArgs {
    pub(crate) fn run(self) -> Result<()> {
        let Self { count, from, host } = self;
        let record = Record::begin(FILE)?;
        guests::build(&["hostile", "declares-the-most", "traps", "hello-c", "hello-rust"].map(String::from))?;
        match &host {
            Some(_) => progress::step("the suite", || cargo::build_some(&["oarlock-hostile"], false))?,
            None => progress::step("the host", cargo::build_programs)?,
        }
        let mut run = Command::new(checkout::program("oarlock-hostile")?);
        run.args(["--mutants", &count.to_string(), "--from", &from.to_string()]);
        if let Some(host) = host {
            run.arg("--host").arg(host);
        }
        let output =
            run.stdin(Stdio::null()).stderr(Stdio::inherit()).output().context("cannot run the mutants")?;
        let stdout = String::from_utf8_lossy(&output.stdout);
        let mut line = match stdout.lines().last() {
            Some(line) => serde_json::from_str(line).context("oarlock-hostile printed no JSON")?,
            None => json!({"mutants": count}),
        };
        line["from"] = from.into();
        append(&record, line, output.status.success())
    }
}

// === impl SwapsArgs ===

impl SwapsArgs {
    pub(crate) fn run(self) -> Result<()> {
        let Self { count, changes, rate, host } = self;
        let record = Record::begin(FILE)?;
        guests::build(&["hostile", "hello-rust"].map(String::from))?;
        let binaries = cargo::build_tests(Lints::Skip)?;
        let whole = binaries.iter().find(|binary| binary.package == "oarlock-tests" && binary.target == "it");
        let whole = whole.context("the end-to-end tests were not built")?;
        let mut run = Command::new(&whole.executable);
        run.current_dir(&whole.folder).args(["promise_6_plugins_are_swapped", "--nocapture"]);
        run.env("OARLOCK_SWAPS", count.to_string()).env("OARLOCK_SWAP_CHANGES", changes.to_string());
        run.env("OARLOCK_SWAP_RATE", rate.to_string());
        if let Some(host) = &host {
            run.env("OARLOCK_TESTS_HOST", std::path::absolute(host)?);
        }
        let output =
            run.stdin(Stdio::null()).stderr(Stdio::inherit()).output().context("cannot run the test")?;
        let stdout = String::from_utf8_lossy(&output.stdout);
        stdout.lines().for_each(progress::say);
        // The test prints its result when it has passed.
        let result = stdout.lines().find_map(|line| serde_json::from_str::<Value>(line).ok());
        let mut line = result.unwrap_or_else(|| json!({"swaps": count, "rate": rate}));
        line["other_host"] = host.is_some().into();
        append(&record, line, output.status.success())
    }
}

fn append(record: &Record, mut line: Value, passed: bool) -> Result<()> {
    line["passed"] = passed.into();
    record.append(line)?;
    if !passed {
        bail!("the soak failed; see the output above");
    }
    Ok(())
}

//! `cargo xtask conformance`: lists client-go's test cases with the tests here that cover them.
//!
//! The cases are in `tests/conformance/cases.toml`. A test names the cases that it covers in a line above its
//! attributes: `// Conformance: 2.4, G.10`. Both together make `tests/conformance/README.md`, with one row
//! per case.

mod cases;
mod table;
mod tags;

use std::collections::BTreeSet;
use std::fs;
use std::process::Stdio;

use anyhow::{Context, Result, bail};

use crate::cargo::TestBinary;
use crate::{checkout, progress};

use self::cases::Cases;
use self::table::Table;

const CASES: &str = "tests/conformance/cases.toml";
const TABLE: &str = "tests/conformance/README.md";

/// Writes the table of client-go's test cases and the tests here that cover them.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Writes nothing; fails if the table is out of date, a tag has no case, or a case has no test.
    #[arg(long)]
    check: bool,
    /// With --check: accepts cases without a test.
    #[arg(long, requires = "check")]
    incomplete: bool,
}

/// The treatment of cases without a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UntestedCases {
    Fail,
    Pass,
}

// === impl Args ===

impl Args {
    pub(crate) fn run(self) -> Result<()> {
        let Self { check, incomplete } = self;
        if check {
            return self::check(if incomplete { UntestedCases::Pass } else { UntestedCases::Fail });
        }
        let (table, faults) = make()?;
        fs::write(checkout::root().join(TABLE), table.to_string())
            .with_context(|| format!("cannot write {TABLE}"))?;
        progress::say(format!("{TABLE}: {}", table.counts()));
        report(&faults)
    }
}

/// Checks that the table is up to date and that the tags match the cases.
pub(crate) fn check(holes: UntestedCases) -> Result<()> {
    let (table, mut faults) = make()?;
    let is = fs::read_to_string(checkout::root().join(TABLE)).unwrap_or_default();
    if is != table.to_string() {
        faults.push(format!("{TABLE} is stale: run `cargo xtask conformance`"));
    }
    match holes {
        UntestedCases::Fail => {
            let open: Vec<_> = table.holes().collect();
            if !open.is_empty() {
                faults.push(format!("no test for {}", open.join(", ")));
            }
        }
        UntestedCases::Pass => {}
    }
    progress::say(format!("conformance: {}", table.counts()));
    report(&faults)
}

/// Checks that the test binaries contain each test of the table.
pub(crate) fn check_built(binaries: &[TestBinary]) -> Result<()> {
    let (table, _) = make()?;
    let mut built = BTreeSet::new();
    for binary in binaries {
        let mut command = std::process::Command::new(&binary.executable);
        command.args(["--list", "--format", "terse"]).current_dir(&binary.folder).stdin(Stdio::null());
        let output = command.output().with_context(|| format!("cannot list {}", binary.target))?;
        let listed = String::from_utf8_lossy(&output.stdout);
        let tests = listed.lines().filter_map(|line| line.strip_suffix(": test"));
        let prefix = binary.prefix();
        built.extend(tests.map(|test| format!("{prefix}{test}")));
    }
    let unknown = table.tests().filter(|test| !built.contains(*test));
    report(&unknown.map(|test| format!("no test binary contains {test}")).collect::<Vec<_>>())
}

fn make() -> Result<(Table, Vec<String>)> {
    let cases = fs::read_to_string(checkout::root().join(CASES)).context("cannot read the cases")?;
    let cases = Cases::parse(&cases).with_context(|| format!("{CASES} is malformed"))?;
    let (tagged, mut faults) = tags::collect()?;
    let (table, more) = Table::new(cases, &tagged);
    faults.extend(more);
    Ok((table, faults))
}

fn report(faults: &[String]) -> Result<()> {
    if !faults.is_empty() {
        bail!("conformance:\n  {}", faults.join("\n  "));
    }
    Ok(())
}

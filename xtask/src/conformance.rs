//! `cargo xtask conformance`: which test stands for which of client-go's cases.
//!
//! The cases are in `tests/conformance/cases.toml`. A test that covers some says so in a line above its attributes, `// Conformance: 2.4, G.10`.
//! From both comes `tests/conformance/README.md`, a row a case.

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

/// Writes the table of client-go's test cases and the tests here that stand for them.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Writes nothing; fails when the table is stale, a tag names no case, or a case has no test.
    #[arg(long)]
    check: bool,
    /// With --check: lets cases without a test pass.
    #[arg(long, requires = "check")]
    incomplete: bool,
}

/// What to do about cases that have no test yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Holes {
    Fail,
    Pass,
}

// === impl Args ===

impl Args {
    pub(crate) fn run(self) -> Result<()> {
        let Self { check, incomplete } = self;
        if check {
            return self::check(if incomplete { Holes::Pass } else { Holes::Fail });
        }
        let (table, faults) = make()?;
        fs::write(checkout::root().join(TABLE), table.to_string())
            .with_context(|| format!("cannot write {TABLE}"))?;
        progress::say(format!("{TABLE}: {}", table.counts()));
        report(&faults)
    }
}

/// Checks that the table is what it would be if it were made now, and that the tags are true to the cases.
pub(crate) fn check(holes: Holes) -> Result<()> {
    let (table, mut faults) = make()?;
    let is = fs::read_to_string(checkout::root().join(TABLE)).unwrap_or_default();
    if is != table.to_string() {
        faults.push(format!("{TABLE} is stale: run `cargo xtask conformance`"));
    }
    match holes {
        Holes::Fail => {
            let open: Vec<_> = table.holes().collect();
            if !open.is_empty() {
                faults.push(format!("no test for {}", open.join(", ")));
            }
        }
        Holes::Pass => {}
    }
    progress::say(format!("conformance: {}", table.counts()));
    report(&faults)
}

/// Checks that each test of the table is one that the test binaries know.
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
    report(&unknown.map(|test| format!("no test binary knows {test}")).collect::<Vec<_>>())
}

fn make() -> Result<(Table, Vec<String>)> {
    let cases = fs::read_to_string(checkout::root().join(CASES)).context("cannot read the cases")?;
    let cases = Cases::parse(&cases).with_context(|| format!("{CASES} is wrong"))?;
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

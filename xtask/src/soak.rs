//! `cargo xtask soak`: the tests of the whole, over and over, which is longer than `cargo xtask test` may take.

mod clients;
mod informer;
mod recovery;

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use crate::toolchain::command;
use crate::{cargo, checkout, control_plane, guests, progress};

/// Runs the tests of the whole again and again, and records the result in bench/results.
#[derive(clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    what: Option<What>,
    /// For how long.
    #[arg(long, default_value_t = 30)]
    minutes: u64,
    /// Only tests whose name contains this.
    #[arg(value_name = "FILTER")]
    filter: Option<String>,
}

#[derive(clap::Subcommand)]
enum What {
    /// Follows an API server on which everything goes wrong, for millions of events.
    Informer(informer::Args),
    /// Runs other people's tests against the embedded API server and the real one.
    Clients(clients::Args),
    /// Measures how soon informers have everything again after API servers that failed for a while, beside client-go's.
    Recovery(recovery::Args),
}

// === impl Args ===

impl Args {
    pub(crate) fn run(self) -> Result<()> {
        let Self { what, minutes, filter } = self;
        match what {
            Some(What::Informer(args)) => return args.run(),
            Some(What::Clients(args)) => return args.run(),
            Some(What::Recovery(args)) => return args.run(),
            None => {}
        }
        guests::build(&[])?;
        control_plane::build()?;
        let binaries = cargo::build_tests()?;
        let whole = binaries.iter().find(|binary| binary.package == "oarlock-tests" && binary.target == "it");
        let whole = whole.context("the tests of the whole are not built")?;
        let (begun, mut rounds, mut failures) = (Instant::now(), 0, Vec::new());
        while rounds == 0 || begun.elapsed() < Duration::from_secs(60 * minutes) {
            rounds += 1;
            let mut round = Command::new(&whole.executable);
            round
                .current_dir(&whole.folder)
                .args(filter.as_slice())
                .env("RUST_BACKTRACE", "0")
                .stdin(Stdio::null());
            if let Err(error) = command::run(&mut round) {
                progress::say(format!("round {rounds} failed: {error:#}"));
                failures.push(rounds);
            } else {
                progress::say(format!("round {rounds} passed after {} s", begun.elapsed().as_secs()));
            }
        }
        let seconds = begun.elapsed().as_secs();
        record(
            "soak.jsonl",
            json!({"soak": filter, "seconds": seconds, "rounds": rounds, "failed_rounds": failures}),
        )?;
        if !failures.is_empty() {
            bail!("{} of {rounds} rounds failed", failures.len());
        }
        Ok(())
    }
}

/// Appends a line to a file in bench/results, with what it is about: the commit, and when.
fn record(name: &str, mut line: Value) -> Result<()> {
    let mut git = Command::new("git");
    let commit = command::output(git.current_dir(checkout::root()).args(["rev-parse", "--short", "HEAD"]))?;
    line["commit"] = commit.trim().into();
    line["unix_seconds"] = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs().into();
    let results = checkout::root().join("bench/results");
    fs::create_dir_all(&results)?;
    let file = results.join(name);
    let mut file =
        OpenOptions::new().create(true).append(true).open(file).context("cannot record the result")?;
    writeln!(file, "{line}")?;
    progress::say(format!("recorded in bench/results/{name}: {line}"));
    Ok(())
}

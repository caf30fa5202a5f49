//! `cargo xtask soak`: tests that run longer than `cargo xtask test` should take.

mod clients;
mod cluster;
mod informer;
mod plugins;
mod recovery;
mod takeover;

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use crate::guests::Ported;
use crate::lint::Lints;
use crate::missing::Missing;
use crate::toolchain::command;
use crate::{cargo, checkout, control_plane, guests, progress};

/// Runs the end-to-end tests repeatedly, and records the result in bench/results.
#[derive(clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Option<SoakCommand>,
    /// The duration, in minutes. The last round is completed.
    #[arg(long, default_value_t = 30)]
    minutes: u64,
    /// Runs only tests whose name contains this text.
    #[arg(value_name = "FILTER")]
    filter: Option<String>,
}

#[derive(clap::Subcommand)]
enum SoakCommand {
    /// Runs the informer against an API server with random faults, for millions of events.
    Informer(informer::Args),
    /// Runs controller-runtime's test suites and client-go checks against the embedded and the real API
    /// server.
    Clients(clients::Args),
    /// Measures how fast our informers and client-go's recover from a failing API server.
    Recovery(recovery::Args),
    /// Injects faults into a cluster of one real node while objects change. Needs root.
    Cluster(cluster::Args),
    /// Runs 10,000 mutated components beside good plugins.
    Mutants(plugins::MutantsArgs),
    /// Swaps plugins 200 times while events flow.
    Swaps(plugins::SwapsArgs),
    /// Measures how long a host on standby needs to take over.
    Takeover(takeover::Args),
}

// === impl Args ===

impl Args {
    pub(crate) fn run(self) -> Result<()> {
        let Self { command, minutes, filter } = self;
        match command {
            Some(SoakCommand::Informer(args)) => return args.run(),
            Some(SoakCommand::Clients(args)) => return args.run(),
            Some(SoakCommand::Recovery(args)) => return args.run(),
            Some(SoakCommand::Cluster(args)) => return args.run(),
            Some(SoakCommand::Mutants(args)) => return args.run(),
            Some(SoakCommand::Swaps(args)) => return args.run(),
            Some(SoakCommand::Takeover(args)) => return args.run(),
            None => {}
        }
        let record = Record::begin("soak.jsonl")?;
        guests::build_all(&Missing::find()?, Ported::Build)?;
        control_plane::build()?;
        let binaries = cargo::build_tests(Lints::Skip)?;
        let whole = binaries.iter().find(|binary| binary.package == "oarlock-tests" && binary.target == "it");
        let whole = whole.context("the end-to-end tests were not built")?;
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
        record.append(
            json!({"soak": filter, "seconds": seconds, "rounds": rounds, "failed_rounds": failures}),
        )?;
        if !failures.is_empty() {
            bail!("{} of {rounds} rounds failed", failures.len());
        }
        Ok(())
    }
}

/// A file of results in bench/results, with the commit that is measured.
pub(crate) struct Record {
    file: &'static str,
    commit: String,
}

// === impl Record ===

impl Record {
    /// Call this before anything is built: later the checkout may be at another commit.
    pub(crate) fn begin(file: &'static str) -> Result<Self> {
        let mut git = Command::new("git");
        git.current_dir(checkout::root()).args(["describe", "--always", "--exclude=*", "--dirty"]);
        Ok(Self { file, commit: command::output(&mut git)?.trim().to_owned() })
    }

    /// Appends a line, with the commit and the time.
    pub(crate) fn append(&self, mut line: Value) -> Result<()> {
        line["commit"] = self.commit.as_str().into();
        line["unix_seconds"] = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs().into();
        let results = checkout::root().join("bench/results");
        fs::create_dir_all(&results)?;
        let file = results.join(self.file);
        let mut file =
            OpenOptions::new().create(true).append(true).open(file).context("cannot record the result")?;
        writeln!(file, "{line}")?;
        progress::say(format!("recorded in bench/results/{}: {line}", self.file));
        Ok(())
    }
}

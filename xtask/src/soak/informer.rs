//! `cargo xtask soak informer`: millions of events with random faults. Memory must stay constant, and the
//! final state of every handler must be right.

use std::process::Stdio;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::Record;
use crate::bench::build::Programs;
use crate::bench::process::{Core, Running, pinned};

/// Runs the informer against an API server with random faults; records whether memory stayed constant and
/// every view is right.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The number of events.
    #[arg(long, default_value_t = 10_000_000)]
    events: u64,
    /// The largest number of objects at a time.
    #[arg(long, default_value_t = 2_000)]
    objects: u64,
    /// The seed of the events and faults.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

// === impl Args ===

impl Args {
    pub(crate) fn run(self) -> Result<()> {
        let Self { events, objects, seed } = self;
        let record = Record::begin("soak-informer.jsonl")?;
        let server = Programs::build_server()?;
        let informer = Programs::build_oarlock()?;
        let mut chaos = pinned(&server, Core::Server);
        chaos.arg("chaos").args(["--pods", &objects.to_string(), "--events", &events.to_string()]);
        let server = Running::start(chaos.args(["--seed", &seed.to_string()]))?;
        let url = server.first_line["url"].as_str().context("the server did not report its address")?;
        let mut soak = pinned(&informer, Core::Subject);
        soak.args(["soak", "--server", url, "--events", &events.to_string()]);
        let output =
            soak.stderr(Stdio::inherit()).stdin(Stdio::null()).output().context("cannot run the soak")?;
        let stdout = String::from_utf8_lossy(&output.stdout);
        if let Some(line) = stdout.lines().last() {
            let mut line: Value = serde_json::from_str(line).context("the soak printed no JSON")?;
            line["seed"] = seed.into();
            line["passed"] = output.status.success().into();
            record.append(line)?;
        }
        if !output.status.success() {
            bail!("the soak failed; see the output above");
        }
        Ok(())
    }
}

//! `cargo xtask soak takeover`: how long a host on standby needs to take over.

use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::Record;
use crate::{cargo, checkout, guests, progress};

/// Ends leaders by SIGKILL and by SIGTERM; records how long their plugins were not called.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The number of takeovers after each signal.
    #[arg(long, default_value_t = 10)]
    rounds: usize,
}

// === impl Args ===

impl Args {
    pub(crate) fn run(self) -> Result<()> {
        let Self { rounds } = self;
        let record = Record::begin("takeover.jsonl")?;
        guests::build(&["mirror".to_owned()])?;
        progress::step("the host", cargo::build_programs)?;
        let mut run = Command::new(checkout::program("oarlock-takeover")?);
        run.args(["--rounds", &rounds.to_string()]);
        let output =
            run.stdin(Stdio::null()).stderr(Stdio::inherit()).output().context("cannot run the takeovers")?;
        let stdout = String::from_utf8_lossy(&output.stdout);
        if !output.status.success() {
            bail!("oarlock-takeover failed ({})", output.status);
        }
        let line = stdout.lines().last().context("oarlock-takeover printed nothing")?;
        let line: Value = serde_json::from_str(line).context("oarlock-takeover printed no JSON")?;
        record.append(line)
    }
}

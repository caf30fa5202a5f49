//! `cargo xtask soak recovery`: how soon informers have everything again after their API server failed for a while, ours beside client-go's.

use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::bench::build::Programs;
use crate::bench::process::Running;
use crate::progress;

/// Runs informers of ours and of client-go at API servers that fail in the same manner, and records how both come through.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// What goes wrong: flaky, cut, reset, down, throttled, unavailable or internal. All of these by default.
    #[arg(value_name = "SCENARIO")]
    scenarios: Vec<String>,
    /// How many informers there are of each kind.
    #[arg(long, default_value_t = 16)]
    informers: u64,
    /// For how long things go wrong. The time until they come right is not in it.
    #[arg(long, default_value_t = 150)]
    seconds: u64,
    /// What happens, and what goes wrong.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

// === impl Args ===

impl Args {
    pub(crate) fn run(self) -> Result<()> {
        let Self { mut scenarios, informers, seconds, seed } = self;
        if scenarios.is_empty() {
            let all = ["flaky", "cut", "reset", "down", "throttled", "unavailable", "internal"];
            scenarios = all.map(str::to_owned).to_vec();
        }
        let server = Programs::build_server()?;
        let ours = Programs::build_oarlock()?;
        for scenario in scenarios {
            let mut peers = Command::new(&server);
            peers.arg("recovery").args(["--scenario", &scenario, "--informers", &informers.to_string()]);
            peers.args(["--seconds", &seconds.to_string(), "--seed", &seed.to_string()]);
            let mut peers = Running::start(&mut peers)?;
            let url = peers.said["url"].as_str().context("the server did not say where it is")?.to_owned();
            let status = Command::new(&ours)
                .args(["recovery", "--server", &url])
                .stdin(Stdio::null())
                .status()
                .context("cannot run our informers")?;
            ensure!(status.success(), "our informers did not come through: see above");
            let line = peers.next_line()?;
            progress::say(format!("{scenario}: {}", told(&line)));
            super::record("soak-recovery.jsonl", line)?;
        }
        Ok(())
    }
}

/// Puts what came out in a line for people.
fn told(line: &Value) -> String {
    let of = |kind: &str| {
        let of = &line[kind];
        let requests: u64 =
            of["requests"].as_object().into_iter().flatten().filter_map(|(_, n)| n.as_u64()).sum();
        format!(
            "{kind} had everything after {:.1} s (median; longest {:.1} s), heard of {} changes, asked {requests} times",
            of["median"].as_f64().unwrap_or_default(),
            of["longest"].as_f64().unwrap_or_default(),
            of["heard"],
        )
    };
    format!("{}; {}; of {} changes", of("ours"), of("client-go"), line["written"])
}

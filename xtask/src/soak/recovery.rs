//! `cargo xtask soak recovery`: the time until informers are up to date after their API server failed, for
//! our informers and client-go's.

use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::Record;
use crate::bench::build::Programs;
use crate::bench::process::Running;
use crate::progress;

/// Runs our informers and client-go's against API servers with the same faults, and records how fast they
/// recover.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The faults: flaky, cut, reset, down, throttled, unavailable or internal; all by default.
    #[arg(value_name = "SCENARIO")]
    scenarios: Vec<String>,
    /// The number of informers of each kind.
    #[arg(long, default_value_t = 16)]
    informers: u64,
    /// The duration of the faults in seconds, without the time of the recovery.
    #[arg(long, default_value_t = 150)]
    seconds: u64,
    /// The seed of the events and faults.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

// === impl Args ===

impl Args {
    pub(crate) fn run(self) -> Result<()> {
        let Self { mut scenarios, informers, seconds, seed } = self;
        let record = Record::begin("soak-recovery.jsonl")?;
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
            let url =
                peers.first_line["url"].as_str().context("the server did not report its address")?.to_owned();
            let status = Command::new(&ours)
                .args(["recovery", "--server", &url])
                .stdin(Stdio::null())
                .status()
                .context("cannot run our informers")?;
            ensure!(status.success(), "our informers did not recover; see the output above");
            let line = peers.next_line()?;
            progress::say(format!("{scenario}: {}", summary(&line)));
            record.append(line)?;
        }
        Ok(())
    }
}

/// Formats a result for people.
fn summary(line: &Value) -> String {
    let of = |kind: &str| {
        let of = &line[kind];
        let requests: u64 =
            of["requests"].as_object().into_iter().flatten().filter_map(|(_, n)| n.as_u64()).sum();
        format!(
            "{kind} recovered after {:.1} s (median; longest {:.1} s), received {} changes, sent {requests} requests",
            of["median"].as_f64().unwrap_or_default(),
            of["longest"].as_f64().unwrap_or_default(),
            of["heard"],
        )
    };
    format!("{}; {}; of {} changes", of("ours"), of("client-go"), line["written"])
}

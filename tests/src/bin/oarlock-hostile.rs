//! Runs good plugins without and beside hostile ones, and prints what it saw as one line of JSON.

#![forbid(unsafe_code)]
#![expect(clippy::print_stdout, reason = "the program prints its result")]

use std::path::PathBuf;
use std::time::Duration;

use clap::Parser;
use oarlock_tests::host_process::binary;
use oarlock_tests::hostile::{Settings, cases, mutants, run};
use tokio::process::Command;

/// Runs good plugins without and beside hostile ones, and prints what it saw as one line of JSON.
#[derive(Parser)]
struct Args {
    /// The number of hostile plugins, of all kinds. Without it: 25 that are hostile all the time.
    #[arg(long)]
    hostile: Option<usize>,
    /// The program of the host. Without it, the one beside this program.
    #[arg(long)]
    host: Option<PathBuf>,
    /// The CPUs of the host, a list as `taskset` reads it. Without it, the host uses those of this program.
    #[arg(long)]
    host_cpus: Option<String>,
    /// Changes of objects in each of the two measured parts.
    #[arg(long, default_value_t = 2_000)]
    changes: usize,
    /// The time between two changes, in milliseconds.
    #[arg(long, default_value_t = 5)]
    pace_ms: u64,
    /// Runs this number of mutated components instead.
    #[arg(long)]
    mutants: Option<u64>,
    /// The seed of the first mutant.
    #[arg(long, default_value_t = 1)]
    from: u64,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let Args { hostile, host, host_cpus, changes, pace_ms, mutants, from } = Args::parse();
    let host = host.map_or_else(|| binary("oarlock"), Ok)?;
    let command = match host_cpus {
        Some(cpus) => {
            let mut taskset = Command::new("taskset");
            taskset.args(["--cpu-list", &cpus]).arg(host);
            taskset
        }
        None => Command::new(host),
    };
    let outcome = match mutants {
        Some(mutants) => serde_json::to_string(&mutants::run(command, mutants, from).await?)?,
        None => {
            let settings = Settings { changes, pace: Duration::from_millis(pace_ms), records: false };
            let cases = hostile.map_or_else(cases::at_work, cases::some);
            serde_json::to_string(&run(command, settings, &cases).await?)?
        }
    };
    println!("{outcome}");
    Ok(())
}

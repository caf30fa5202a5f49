//! Runs good plugins without and beside hostile ones, and prints what it saw as one line of JSON.

#![forbid(unsafe_code)]
#![expect(clippy::print_stdout, reason = "the program prints its result")]

use std::time::Duration;

use clap::Parser;
use oarlock_tests::hostile::{Settings, cases, mutants, run};

/// Runs good plugins without and beside hostile ones, and prints what it saw as one line of JSON.
#[derive(Parser)]
struct Args {
    /// The number of hostile plugins.
    #[arg(long, default_value_t = 25)]
    hostile: usize,
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
    let Args { hostile, changes, pace_ms, mutants, from } = Args::parse();
    if let Some(mutants) = mutants {
        println!("{}", serde_json::to_string(&mutants::run(mutants, from).await?)?);
        return Ok(());
    }
    let settings = Settings { changes, pace: Duration::from_millis(pace_ms) };
    let outcome = run(settings, &cases::some(hostile)).await?;
    println!("{}", serde_json::to_string(&outcome)?);
    Ok(())
}

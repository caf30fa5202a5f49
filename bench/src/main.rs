//! `oarlock-bench`: the informer under measurement, as the host runs it; and the transport alone, for the distance.
//!
//! Each command is one run of one subject in a process of its own. It prints its readings as one line of JSON;
//! `cargo xtask bench informer` starts it, pinned, as it starts the others.

#![forbid(unsafe_code)]
#![expect(clippy::disallowed_methods, reason = "a run is a process of its own: what it starts ends with it")]

mod informer;
mod reads;
mod real;
mod recovery;
mod soak;
mod subject;
mod transport;

use anyhow::Result;
use clap::{Parser, Subcommand};
use oarlock_measure::Record;

// As the host. How it is tuned, and why, stands in .cargo/config.toml.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

#[derive(Parser)]
struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Caches and hears everything that the synthetic API server has.
    Informer(informer::Args),
    /// Reads the same bytes and counts lines.
    Transport(transport::Args),
    /// Caches the Pods of a real API server.
    Real(real::Args),
    /// Hears of what is written to a real API server.
    Follow(real::Follow),
    /// Follows an API server on which everything goes wrong, and says whether memory stays flat and every view is right.
    Soak(soak::Args),
    /// Follows API servers that fail for a while, and says how soon afterwards everything is there.
    Recovery(recovery::Args),
    /// Says how small zstd gets what comes on stdin, at level 19.
    Zstd,
}

// As the host.
#[tokio::main]
async fn main() -> Result<()> {
    match Args::parse().command {
        Command::Informer(args) => print(&informer::run(args).await?),
        Command::Transport(args) => print(&transport::run(args).await?),
        Command::Real(args) => print(&real::run(args).await?),
        Command::Follow(args) => real::follow(args).await,
        Command::Soak(args) => soak::run(args).await,
        Command::Recovery(args) => recovery::run(args).await,
        Command::Zstd => zstd(),
    }
}

#[expect(clippy::print_stdout, reason = "the readings are what is asked for")]
fn print(record: &Record) -> Result<()> {
    println!("{}", serde_json::to_string(record)?);
    Ok(())
}

#[expect(clippy::print_stdout, reason = "the size is what is asked for")]
fn zstd() -> Result<()> {
    let compressed = zstd::stream::encode_all(std::io::stdin().lock(), 19)?;
    println!("{}", compressed.len());
    Ok(())
}

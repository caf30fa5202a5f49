//! `oarlock-bench`: measures the informer as the host runs it, and the transport alone for comparison.
//!
//! Each command is one run of one subject in its own process. It prints its readings as one line of JSON.
//! `cargo xtask bench informer` starts it pinned to a core, like the other subjects.

#![forbid(unsafe_code)]
#![expect(clippy::disallowed_methods, reason = "a run is a process of its own: what it starts ends with it")]

mod compile;
mod informer;
mod objects;
mod reads;
mod real;
mod recovery;
mod soak;
mod subject;
mod transport;

use anyhow::Result;
use clap::{Parser, Subcommand};
use oarlock_measure::Record;

// As in the host. `.cargo/config.toml` has its configuration and the reasons.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

#[derive(Parser)]
struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Caches the objects of the synthetic API server and handles its events.
    Informer(informer::Args),
    /// Reads the same bytes and counts the lines.
    Transport(transport::Args),
    /// Caches the Pods of a real API server.
    Real(real::Args),
    /// Measures when the informer receives the writes to a real API server.
    Follow(real::Follow),
    /// Follows an API server with many faults, and checks the memory and the view of every handler.
    Soak(soak::Args),
    /// Follows API servers that fail for a while, and measures the time until the caches are complete again.
    Recovery(recovery::Args),
    /// Writes ConfigMaps to an API server, for plugins that watch them.
    Objects(objects::Args),
    /// Compiles components as the host's child processes do, but in this process and without limits.
    Compile(compile::Args),
    /// Prints the size of standard input compressed with zstd at level 19.
    Zstd,
}

// As in the host.
#[tokio::main]
async fn main() -> Result<()> {
    match Args::parse().command {
        Command::Informer(args) => print(&informer::run(args).await?),
        Command::Transport(args) => print(&transport::run(args).await?),
        Command::Real(args) => print(&real::run(args).await?),
        Command::Follow(args) => real::follow(args).await,
        Command::Soak(args) => soak::run(args).await,
        Command::Recovery(args) => recovery::run(args).await,
        Command::Objects(args) => objects::run(args).await,
        Command::Compile(args) => print(&compile::run(&args)?),
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

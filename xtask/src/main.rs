//! `cargo xtask`: what the project does to itself.

#![forbid(unsafe_code)]

mod checkout;
mod guests;
mod progress;
mod toolchain;

use clap::{Parser, Subcommand};

/// What the project does to itself.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Builds guests into target/guests/NAME.wasm, with the toolchains they need.
    Guests(guests::Args),
}

fn main() -> anyhow::Result<()> {
    match Args::parse().command {
        Command::Guests(args) => args.run(),
    }
}

//! `cargo xtask`: what the project does to itself.

#![forbid(unsafe_code)]

mod bench;
mod builtin_types;
mod cargo;
mod checkout;
mod conformance;
mod control_plane;
mod demo;
mod fuzz;
mod guests;
mod progress;
mod soak;
mod test;
mod tidy;
mod toolchain;

use std::process::ExitCode;

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
    /// Builds everything, runs real plugins on real events and says whether anything was lost.
    Demo(demo::Args),
    /// Sets up and runs every test, fast ones first.
    Test(test::Args),
    /// Fuzzes what reads bytes from outside: watch streams, list pages, objects, selectors, pointers.
    Fuzz(fuzz::Args),
    /// Runs the tests of the whole, or the informer, for long, and records the result.
    Soak(soak::Args),
    /// Measures the informer beside its peers.
    Bench(bench::Args),
    /// Checks the house's rules that no lint knows.
    Tidy(tidy::Args),
    /// Writes the table of client-go's test cases and the tests here that stand for them.
    Conformance(conformance::Args),
    /// Builds the real etcd and kube-apiserver for the tests, and prints where they are.
    ControlPlane(control_plane::Args),
    /// Writes the table of built-in types that the embedded API server reads.
    BuiltinTypes(builtin_types::Args),
}

fn main() -> ExitCode {
    match run(Args::parse().command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            progress::say(format!("{error:#}"));
            ExitCode::FAILURE
        }
    }
}

fn run(command: Command) -> anyhow::Result<()> {
    match command {
        Command::Guests(args) => args.run(),
        Command::Demo(args) => args.run(),
        Command::Test(args) => args.run(),
        Command::Fuzz(args) => args.run(),
        Command::Soak(args) => args.run(),
        Command::Bench(args) => args.run(),
        Command::Tidy(args) => args.run(),
        Command::Conformance(args) => args.run(),
        Command::ControlPlane(args) => args.run(),
        Command::BuiltinTypes(args) => args.run(),
    }
}

//! `cargo xtask`: the tasks of this project.

#![forbid(unsafe_code)]

mod bench;
mod builtin_types;
mod cargo;
mod checkout;
mod conformance;
mod control_plane;
mod demo;
mod docs;
mod fuzz;
mod guests;
mod image;
mod lint;
mod missing;
mod monitoring;
mod node;
mod previous;
mod profile;
mod sdk;
mod soak;
mod statistics;
mod test;
mod tidy;
mod tool;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
// Other files name them as modules of this crate.
use oarlock_guest_build::{progress, toolchain};

/// The tasks of this project: builds, tests, benchmarks, checks.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Builds guests into target/guests/NAME.wasm, with the toolchains that they need.
    Guests(guests::Args),
    /// Builds everything, runs real plugins on real events, and checks that no event was lost.
    Demo(demo::Args),
    /// Writes the generated pages of the documentation, checks all links, and builds the site.
    Docs(docs::Args),
    /// Builds and runs all tests, fast ones first.
    Test(test::Args),
    /// Fuzzes the decoders of external input: watch streams, list pages, objects, selectors, pointers.
    Fuzz(fuzz::Args),
    /// Runs end-to-end tests, or other long tests, for a long time, and records the results.
    Soak(soak::Args),
    /// Measures the informer and its peers.
    Bench(bench::Args),
    /// Checks the rules of this repository that no lint covers.
    Tidy(tidy::Args),
    /// Checks the SDKs with the tools of their languages: tests, types, format, lints.
    Sdk,
    /// Writes the bindings of the Go SDK.
    GoBindings(sdk::go::Args),
    /// Writes the table of client-go's test cases and the tests here that cover them.
    Conformance(conformance::Args),
    /// Builds the real etcd and kube-apiserver for the tests, and prints their paths.
    ControlPlane(control_plane::Args),
    /// Runs a Kubernetes cluster of one real node on this machine, until Ctrl-C. Needs root.
    Node(node::Args),
    /// Builds a tool that tests use (crane, helm, kustomize), and prints its path.
    Tool(tool::Args),
    /// Builds the container image of the host, as an OCI image layout.
    Image(image::Args),
    /// Builds the program that checks alert rules and dashboards, and prints its path.
    MonitoringCheck,
    /// Generates the table of built-in types for the embedded API server.
    BuiltinTypes(builtin_types::Args),
    /// Makes the zstd statistics with which every dictionary of the informer begins.
    Statistics(statistics::Args),
    /// Makes the execution profile with which the image's binary is compiled.
    Profile(profile::Args),
}

fn main() -> ExitCode {
    let result = if lint::is_wrapper() {
        lint::run_wrapper()
    } else {
        run(Args::parse().command).map(|()| ExitCode::SUCCESS)
    };
    match result {
        Ok(code) => code,
        Err(error) => {
            progress::say(format!("xtask: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

fn run(command: Command) -> anyhow::Result<()> {
    match command {
        Command::Guests(args) => args.run(),
        Command::Demo(args) => args.run(),
        Command::Docs(args) => args.run(),
        Command::Test(args) => args.run(),
        Command::Fuzz(args) => args.run(),
        Command::Soak(args) => args.run(),
        Command::Bench(args) => args.run(),
        Command::Tidy(args) => args.run(),
        Command::Sdk => sdk::check(&missing::Missing::find()?),
        Command::GoBindings(args) => args.run(),
        Command::Conformance(args) => args.run(),
        Command::ControlPlane(args) => args.run(),
        Command::Node(args) => args.run(),
        Command::Tool(args) => args.run(),
        Command::Image(args) => args.run(),
        Command::MonitoringCheck => monitoring::run(),
        Command::BuiltinTypes(args) => args.run(),
        Command::Statistics(args) => args.run(),
        Command::Profile(args) => args.run(),
    }
}

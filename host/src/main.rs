//! `oarlock`: WebAssembly plugins as Kubernetes controllers.
#![forbid(unsafe_code)]

mod args;
mod commands;
mod compiled;
mod connect;
mod failure;
mod printer;
mod shutdown;
mod size;
mod telemetry;

use std::process::ExitCode;

use clap::Parser;

use crate::args::{Args, Command};

// A cache is many small allocations that come and go at different times. jemalloc packs them, and gives back what is free; how it is
// tuned stands in .cargo/config.toml, what that is worth in bench/README.md.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

#[tokio::main]
async fn main() -> ExitCode {
    let Args { log, cache_dir, environment, command } = Args::parse();
    telemetry::install(&log);
    let ended = match compiled::engine_config(cache_dir, &environment) {
        Ok(engine) => match command {
            Command::Run(args) => commands::run::run(args, &environment, engine).await,
            Command::Dev(args) => commands::dev::run(args, engine).await,
            Command::Rbac(args) => commands::rbac::run(args, engine).await,
            Command::Plugin(args) => commands::plugin::run(args, engine).await,
        },
        Err(failure) => Err(failure),
    };
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            failure.tell();
            failure.exit_code()
        }
    }
}

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
use oarlock_plugin::compiler;

use crate::{
    args::{Args, ChildArgs, Command},
    failure::Failure,
};

// A cache is many small allocations that come and go at different times. jemalloc packs them, and gives back what is free; how it is
// tuned stands in .cargo/config.toml, what that is worth in bench/README.md.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    let args = Args::parse();
    match args.command {
        // Before there is a runtime: this process limits its own rights and resources.
        Command::CompileComponent(ChildArgs { arguments }) => compiler::run(arguments),
        Command::LaunchServer(ChildArgs { arguments }) => oarlock_control_plane::launch(arguments),
        _ => start(args),
    }
}

fn start(args: Args) -> ExitCode {
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            let failure = Failure::running(anyhow::Error::new(error).context("no threads can be started"));
            failure.tell();
            return failure.exit_code();
        }
    };
    let code = runtime.block_on(run(args));
    // A thread that reads a file from a file system that does not answer is not waited for.
    runtime.shutdown_background();
    code
}

async fn run(args: Args) -> ExitCode {
    let Args { log, cache_dir, environment, command } = args;
    let log = telemetry::install(&log, environment.no_color.as_deref());
    let ended = match compiled::engine_config(cache_dir, &environment) {
        Ok(engine) => match command {
            Command::Run(args) => commands::run::run(args, &environment, engine).await,
            Command::Dev(args) => commands::dev::run(args, &environment, engine).await,
            Command::Rbac(args) => commands::rbac::run(args, engine).await,
            Command::Plugin(args) => commands::plugin::run(args, engine).await,
            Command::CompileComponent(_) | Command::LaunchServer(_) => Ok(()),
        },
        Err(failure) => Err(failure),
    };
    log.flush();
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            failure.tell();
            failure.exit_code()
        }
    }
}

//! `oarlock`: WebAssembly plugins as Kubernetes controllers.
#![forbid(unsafe_code)]

mod args;
mod commands;
mod connect;
mod failure;
mod printer;
mod shutdown;
mod telemetry;

use std::process::ExitCode;

use clap::Parser;

use crate::args::{Args, Command};

#[tokio::main]
async fn main() -> ExitCode {
    let Args { log, command } = Args::parse();
    telemetry::install(&log);
    let ended = match command {
        Command::Run(args) => commands::run::run(args).await,
        Command::Dev(args) => commands::dev::run(args).await,
        Command::Rbac(args) => commands::rbac::run(args).await,
        Command::Plugin(args) => commands::plugin::run(args).await,
    };
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            failure.tell();
            failure.exit_code()
        }
    }
}

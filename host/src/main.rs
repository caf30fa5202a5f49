//! `oarlock`: WebAssembly plugins as Kubernetes controllers.
#![forbid(unsafe_code)]
// They panic when standard error is closed: `progress::say` does not.
#![warn(clippy::print_stderr)]

mod age;
mod args;
mod commands;
mod compiled;
mod connect;
mod control_client;
mod failure;
mod kubectl;
mod printer;
mod private_folder;
mod shell_word;
mod shutdown;
mod size;
mod state_folder;
mod table;
mod telemetry;
mod unread;
mod view;

use std::{
    ffi::OsStr,
    path::{Path, PathBuf},
    process::ExitCode,
};

use clap::CommandFactory;
use oarlock_plugin::compiler;

use crate::{
    args::{Args, ChildArgs, Command, Environment, Output},
    control_client::Finding,
    failure::{Ended, Failure},
    unread::while_read,
};

// A cache consists of many small allocations with different lifetimes. jemalloc packs them, and returns free
// memory to the system. .cargo/config.toml has its settings, bench/README.md their effect.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// After how many turns a worker polls its sockets and timers, also while it has tasks to run. Beside
/// dispatchers with time slices of half a millisecond, a plugin's backlog would keep them waiting for 30 ms
/// with tokio's default of 61.
const EVENT_INTERVAL: u32 = 16;

fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args_os().collect();
    // kubectl finds its plugins by the names of their files.
    let program = arguments.first().map(Path::new).and_then(Path::file_name).and_then(OsStr::to_str);
    match program {
        Some(kubectl::PROGRAM) => return block_on(kubectl::run(arguments)),
        Some(kubectl::COMPLETER) => return block_on(kubectl::complete(arguments)),
        _ => {}
    }
    if arguments.len() < 2 {
        // clap prints an error with the subcommands that are hidden, since some options come from the
        // environment.
        telemetry::print_at_end(Args::command().render_help().to_string());
        return ExitCode::from(2);
    }
    let args = Args::of_process(arguments).unwrap_or_else(|error| args::with_tip(error).exit());
    match args.command {
        // Before there is a runtime: this process limits its own rights and resources.
        Command::CompileComponent(ChildArgs { arguments }) => compiler::run(arguments),
        Command::LaunchServer(ChildArgs { arguments }) => oarlock_control_plane::launch(arguments),
        _ => block_on(run(args)),
    }
}

fn block_on(command: impl Future<Output = ExitCode>) -> ExitCode {
    let runtime =
        match tokio::runtime::Builder::new_multi_thread().event_interval(EVENT_INTERVAL).enable_all().build()
        {
            Ok(runtime) => runtime,
            Err(error) => {
                let failure = Failure::running(
                    anyhow::Error::new(error).context("the runtime's threads cannot be started"),
                );
                failure.print();
                return failure.exit_code();
            }
        };
    let code = runtime.block_on(command);
    // Does not wait for a thread that reads a file from a file system that does not answer.
    runtime.shutdown_background();
    code
}

async fn run(args: Args) -> ExitCode {
    let Args { log, cache_dir, state_dir, environment, command } = args;
    let log = telemetry::install(&log, format(&command), environment.no_color.as_deref());
    let ended = dispatch(command, cache_dir, state_dir, &environment).await;
    log.flush();
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            failure.print();
            failure.exit_code()
        }
    }
}

/// Runs a command. Only those that compile components use the folder for compiled code.
async fn dispatch(
    command: Command,
    cache_dir: Option<PathBuf>,
    state_dir: Option<PathBuf>,
    environment: &Environment,
) -> Ended {
    let engine = || compiled::engine_config(cache_dir, environment);
    match command {
        Command::Run(args) => {
            let engine = engine()?;
            Box::pin(commands::run::run(args, state_dir, environment, engine)).await
        }
        Command::Dev(args) => {
            let engine = engine()?;
            Box::pin(commands::dev::run(args, state_dir, environment, engine)).await
        }
        Command::Rbac(args) => commands::rbac::run(args, engine()?).await,
        Command::Plugin(args) => commands::plugin::run(args, environment, engine()?).await,
        Command::Install(args) => commands::install::run(&args),
        Command::Completions(args) => commands::completions::run(&args),
        Command::Reference => commands::reference::run(),
        other => ask_host(other, state_dir, environment).await,
    }
}

/// Returns the format of the log: that of the events of a host, and text for other commands.
fn format(command: &Command) -> Output {
    match command {
        Command::Run(args) => args.host.output,
        Command::Dev(args) => args.host.output,
        _ => Output::Human,
    }
}

/// Runs a command that asks a running host.
async fn ask_host(command: Command, state_dir: Option<PathBuf>, environment: &Environment) -> Ended {
    let finding = Finding { state_dir, environment };
    match command {
        Command::Plugins(args) => while_read(args.list.watch, commands::plugins::run(args, finding)).await,
        Command::Top(args) => commands::top::run(args, finding).await,
        Command::Logs(args) => while_read(args.lines.follow, commands::logs::run(args, finding)).await,
        Command::DeadLetters(args) => {
            while_read(args.list.watch, commands::parked::list(args, finding)).await
        }
        Command::Redeliver(args) => commands::parked::redeliver(args, finding).await,
        Command::Suspend(args) => commands::lifecycle::suspend(args, finding).await,
        Command::Resume(args) => commands::lifecycle::resume(args, finding).await,
        Command::Rollback(args) => commands::lifecycle::rollback(args, finding).await,
        // `run` and `main` handle the others.
        Command::Run(_)
        | Command::Dev(_)
        | Command::Install(_)
        | Command::Rbac(_)
        | Command::Plugin(_)
        | Command::Completions(_)
        | Command::Reference
        | Command::CompileComponent(_)
        | Command::LaunchServer(_) => Ok(()),
    }
}

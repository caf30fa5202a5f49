//! `oarlock plugin`: its commands have a file each; `inspect` is in [`check`], `replay` in [`super::replay`].

mod build;
mod check;
mod doctor;
mod new;
mod push;
mod registry;
mod show;
mod test;

use oarlock_plugin::EngineConfig;

use crate::{
    args::{Environment, PluginArgs, PluginCommand},
    failure::Ended,
};

pub(crate) async fn run(args: PluginArgs, environment: &Environment, engine: EngineConfig) -> Ended {
    let PluginArgs { command } = args;
    match command {
        PluginCommand::New(args) => new::run(args),
        PluginCommand::Build(args) => build::run(args).await,
        PluginCommand::Test(args) => test::run(args, engine).await,
        PluginCommand::Doctor(args) => doctor::run(args),
        PluginCommand::Check(args) => check::check(args, environment, engine).await,
        PluginCommand::Inspect(args) => check::inspect(args, environment, engine).await,
        PluginCommand::Push(args) => push::run(args, environment, engine).await,
        PluginCommand::Replay(args) => super::replay::run(args, engine).await,
    }
}

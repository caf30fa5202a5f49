//! `oarlock plugin`: its commands have a file each; `inspect` is in [`check`], `replay` in [`super::replay`].

mod build;
mod check;
mod doctor;
mod new;
mod show;
mod test;

use oarlock_plugin::EngineConfig;

use crate::{
    args::{PluginArgs, PluginCommand},
    failure::Ended,
};

pub(crate) async fn run(args: PluginArgs, engine: EngineConfig) -> Ended {
    let PluginArgs { command } = args;
    match command {
        PluginCommand::New(args) => new::run(args),
        PluginCommand::Build(args) => build::run(args).await,
        PluginCommand::Test(args) => test::run(args, engine).await,
        PluginCommand::Doctor(args) => doctor::run(args),
        PluginCommand::Check(args) => check::check(args, engine).await,
        PluginCommand::Inspect(args) => check::inspect(args, engine).await,
        PluginCommand::Replay(args) => super::replay::run(args, engine).await,
    }
}

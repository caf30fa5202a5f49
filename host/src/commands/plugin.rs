//! `oarlock plugin`: `inspect` prints a plugin's description, without running it; `replay` is in
//! [`super::replay`], the other commands have a file each.

mod build;
mod doctor;
mod new;
mod show;
mod test;

use std::{io::Write, path::Path};

use oarlock_controller::config::PluginFile;
use oarlock_plugin::{EngineConfig, Limits};

use super::examine;
use crate::{
    args::{InspectArgs, PluginArgs, PluginCommand},
    failure::{Ended, Failure},
};

pub(crate) async fn run(args: PluginArgs, engine: EngineConfig) -> Ended {
    let PluginArgs { command } = args;
    match command {
        PluginCommand::New(args) => new::run(args),
        PluginCommand::Build(args) => build::run(args).await,
        PluginCommand::Test(args) => test::run(args, engine).await,
        PluginCommand::Doctor(args) => doctor::run(args),
        PluginCommand::Inspect(args) => inspect(args, engine).await,
        PluginCommand::Replay(args) => super::replay::run(args, engine).await,
    }
}

async fn inspect(args: InspectArgs, engine: EngineConfig) -> Ended {
    let InspectArgs { file } = args;
    let engine = examine::engine(engine)?;
    let text = if is_component(&file) {
        let examined =
            examine::examine(&engine, "inspect", &file, serde_json::Map::new(), Limits::default()).await?;
        show::component(&file, &examined)
    } else {
        let plugin = PluginFile::read(&file).map_err(Failure::caller)?;
        let examined = examine::examine(
            &engine,
            &plugin.name,
            &plugin.component,
            plugin.config.clone(),
            plugin.limits.clone(),
        )
        .await?;
        let mut text = show::plugin(&plugin);
        text.push_str(&show::component(&plugin.component, &examined));
        text
    };
    std::io::stdout().write_all(text.as_bytes()).map_err(Failure::output)
}

/// Returns whether a path is not a plugin's file or folder. It is then read as a component, which may fail.
fn is_component(path: &Path) -> bool {
    let extension = path.extension().and_then(|extension| extension.to_str());
    !path.is_dir() && !matches!(extension, Some("yaml" | "yml" | "toml"))
}

//! `oarlock plugin build`: builds the component of a plugin.

use std::path::Path;

use oarlock_controller::config::{Error, PluginFile};
use oarlock_guest_build::{Outcome, progress};

use super::super::sources::Sources;
use crate::{
    args::BuildArgs,
    failure::{Ended, Failure},
};

pub(super) async fn run(args: BuildArgs) -> Ended {
    let BuildArgs { folder } = args;
    // Compilers run for seconds to minutes.
    tokio::task::spawn_blocking(move || build(&folder)).await.map_err(Failure::running)?
}

fn build(folder: &Path) -> Ended {
    let file = plugin_file(folder)?;
    if Sources::of(&file)?.build()? == Outcome::Unchanged {
        progress::say(format!("{} is up to date", file.component.display()));
    }
    Ok(())
}

/// Reads the plugin's file in a folder.
pub(super) fn plugin_file(folder: &Path) -> Result<PluginFile, Failure> {
    PluginFile::read(folder).map_err(|error| {
        // The text of this error has the text of its source.
        let failure = Failure::caller(anyhow::anyhow!("{error}"));
        match error {
            Error::Read { .. } | Error::EmptyFolder { .. } => failure.hint(
                "name the folder of a plugin, with its plugin.yaml; `oarlock plugin new --help` says how to make one",
            ),
            _ => failure,
        }
    })
}

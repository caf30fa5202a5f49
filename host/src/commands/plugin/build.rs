//! `oarlock plugin build`: builds the component of a plugin.

use std::path::Path;

use oarlock_controller::config::PluginFile;
use oarlock_guest_build::{
    Language, Outcome, Project,
    doctor::{self, State, Tool},
    progress,
};

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
    let PluginFile { path, name, component, .. } = PluginFile::read(folder).map_err(|error| {
        // The text of this error has the text of its source.
        Failure::caller(anyhow::anyhow!("{error}")).hint(
            "name the folder of a plugin, with its plugin.yaml; `oarlock plugin new --help` says how to make one",
        )
    })?;
    let folder = match path.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    };
    let project = Project::open(&name, folder, &component).map_err(|error| {
        Failure::caller(error).hint("plugin.yaml and the project file of the language must be in one folder")
    })?;
    match oarlock_guest_build::build(&project) {
        Ok(Outcome::Written) => Ok(()),
        Ok(Outcome::Unchanged) => {
            progress::say(format!("{} is up to date", component.display()));
            Ok(())
        }
        Err(error) => Err(failure(project.language, &doctor::tools(project.language), error)),
    }
}

/// Returns the failure of a build: what is missing, or else the error, which has the messages of the tools.
fn failure(language: Language, tools: &[Tool], error: anyhow::Error) -> Failure {
    let mut missing = tools.iter().filter_map(|tool| match &tool.state {
        State::Missing { version, command } => Some((tool, version, command)),
        State::Found { .. } | State::Fetched { .. } => None,
    });
    let Some((Tool { tool, wanted, .. }, version, command)) = missing.next() else {
        return Failure::running(error);
    };
    let found = match version {
        Some(version) => format!("found is {version}"),
        None => "it is missing".to_owned(),
    };
    // The error of the build may have another reason, so it is shown as well.
    let needs = format!("plugins in {language} need {tool} {wanted}: {found}");
    Failure::caller(error.context(needs)).hint(format_args!(
        "get it: {command}; `oarlock plugin doctor --lang {}` lists all tools",
        language.short_name()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_tool_explains_a_failed_build() {
        let mut tool = Tool {
            language: "js",
            tool: "node",
            wanted: "20 or newer".to_owned(),
            state: State::Missing {
                version: Some("18.1.0".to_owned()),
                command: "sudo apt-get install nodejs npm".to_owned(),
            },
        };
        let failed = || anyhow::anyhow!("it failed");
        let text = failure(Language::JavaScript, std::slice::from_ref(&tool), failed()).text();
        insta::assert_snapshot!(text, @r"
        plugins in JavaScript need node 20 or newer: found is 18.1.0: it failed
        hint: get it: sudo apt-get install nodejs npm; `oarlock plugin doctor --lang js` lists all tools
        ");
        tool.state = State::Found { version: "20.0.0".to_owned(), path: "/usr/bin/node".into() };
        assert_eq!(failure(Language::JavaScript, &[tool], failed()).text(), "it failed");
    }
}

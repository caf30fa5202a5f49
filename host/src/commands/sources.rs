//! The sources of a plugin that lie beside its file: they are built before they run, and again when they
//! change.

use std::{path::Path, time::Duration};

use oarlock_controller::config::PluginFile;
use oarlock_guest_build::{
    Language, Outcome, Project,
    doctor::{self, Tool},
    progress,
};

use super::schemas;
use crate::failure::Failure;

/// How often sources are looked at.
pub(super) const LOOK: Duration = Duration::from_millis(300);

/// The plugin of a folder, and its sources.
pub(super) struct Sources {
    pub(super) project: Project,
}

// === impl Sources ===

impl Sources {
    /// Returns the sources of a plugin whose component lies in the same folder: the folder of a project. A
    /// component elsewhere is built by others.
    pub(super) fn beside(file: &PluginFile) -> Result<Option<Self>, Failure> {
        let folder = folder(&file.path);
        let is_beside = file.component.parent().is_some_and(|parent| same(parent, folder));
        if !is_beside || Language::of(folder).is_none() {
            return Ok(None);
        }
        Self::of(file).map(Some)
    }

    /// Returns the sources in the folder of a plugin's file.
    pub(super) fn of(file: &PluginFile) -> Result<Self, Failure> {
        let project = Project::open(&file.name, folder(&file.path), &file.component).map_err(|error| {
            Failure::caller(error)
                .hint("plugin.yaml and the project file of the language must be in one folder")
        })?;
        Ok(Self { project })
    }

    /// Builds the component. Blocks for seconds to minutes.
    pub(super) fn build(&self) -> Result<Outcome, Failure> {
        let Project { language, folder, .. } = &self.project;
        let language = *language;
        schemas::write(folder).map_err(Failure::running)?;
        oarlock_guest_build::build(&self.project)
            .map_err(|error| failure(language, &doctor::tools(language), error))
    }

    /// Builds the component again after each change of a source. Never returns.
    pub(super) fn rebuild(&self) -> ! {
        let mut built = self.state();
        loop {
            let now = self.wait_for_change(built);
            match self.build() {
                Ok(Outcome::Written | Outcome::Unchanged) => {}
                Err(failure) => {
                    failure.print();
                    progress::say(format!("{}: the version before keeps serving", self.project.name));
                }
            }
            built = now;
        }
    }

    /// Waits until the sources are others than `built`, and do not change any more. Blocks.
    fn wait_for_change(&self, built: Option<u64>) -> Option<u64> {
        let mut before = built;
        loop {
            std::thread::park_timeout(LOOK);
            let now = self.state();
            if now != built && now == before {
                return now;
            }
            before = now;
        }
    }

    /// Returns what stands for the content of all sources; none while they cannot be read.
    pub(super) fn state(&self) -> Option<u64> {
        self.project.sources().ok()
    }
}

/// Returns the folder of a file.
pub(super) fn folder(file: &Path) -> &Path {
    match file.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    }
}

fn same(a: &Path, b: &Path) -> bool {
    let a = if a == Path::new("") { Path::new(".") } else { a };
    matches!((a.canonicalize(), b.canonicalize()), (Ok(a), Ok(b)) if a == b)
}

/// Returns the failure of a build: what is missing, or else the error, which has the messages of the tools.
fn failure(language: Language, tools: &[Tool], error: anyhow::Error) -> Failure {
    let Some((missing, command)) = tools.iter().find_map(Tool::missing) else {
        return Failure::running(error);
    };
    // The error of the build may have another reason, so it is shown as well.
    let needs = format!("plugins in {language} need {missing}");
    Failure::caller(error.context(needs)).hint(format_args!(
        "get it: {command}; `oarlock plugin doctor --lang {}` lists all tools",
        language.short_name()
    ))
}

#[cfg(test)]
mod tests {
    use oarlock_guest_build::doctor::State;

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

    #[test]
    fn only_a_component_beside_its_sources_is_built() {
        let folder = tempfile::tempdir().unwrap();
        let file = |component: &str| {
            let path = folder.path().join("plugin.yaml");
            let text =
                format!("name: a\ncomponent: {component}\nserviceAccount: {{namespace: default, name: a}}\n");
            std::fs::write(&path, text).unwrap();
            PluginFile::read(&path).unwrap()
        };
        assert!(Sources::beside(&file("a.wasm")).unwrap().is_none(), "a folder without sources");
        std::fs::write(folder.path().join("requirements.txt"), "").unwrap();
        assert!(Sources::beside(&file("a.wasm")).unwrap().is_some());
        assert!(Sources::beside(&file("../a.wasm")).unwrap().is_none());
    }
}

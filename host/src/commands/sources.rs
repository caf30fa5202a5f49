//! The sources of a plugin that lie beside its file: they are built before they run, and again when they
//! change.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use oarlock_controller::config::PluginFile;
use oarlock_guest_build::{
    Language, Outcome, Project, Snapshot,
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
    /// What is no source, though it may lie in the folder.
    pub(super) written: Written,
}

/// Files and folders that this process writes while sources are looked at.
#[derive(Clone, Default)]
pub(super) struct Written {
    /// Files, and folders with all in them.
    paths: Vec<PathBuf>,
    /// Files of records. The next ones have a number in the name.
    records: Vec<PathBuf>,
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
        Ok(Self { project, written: Written::default() })
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
            let now = self.wait_for_change(built.as_ref());
            let changed = built.as_ref().zip(now.as_ref()).and_then(|(built, now)| now.changed_since(built));
            if let Some(file) = changed {
                progress::say(format!("{}: {} has changed", self.project.name, file.display()));
            }
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
    fn wait_for_change(&self, built: Option<&Snapshot>) -> Option<Snapshot> {
        let mut before = built.cloned();
        loop {
            std::thread::park_timeout(LOOK);
            let now = self.state();
            if now.as_ref() != built && now == before {
                return now;
            }
            before = now;
        }
    }

    /// Returns the content of all sources; none while they cannot be read.
    pub(super) fn state(&self) -> Option<Snapshot> {
        let Self { project, written } = self;
        project.snapshot(&|path| written.contains(path, &project.folder)).ok()
    }
}

// === impl Written ===

impl Written {
    /// Returns the files and folders of this process. `record` is the path of `--record`, and `plugins` are
    /// the names that its `{plugin}` may stand for.
    pub(super) fn new(paths: &[Option<&Path>], record: Option<&Path>, plugins: &[String]) -> Self {
        let records = record.into_iter().flat_map(|record| {
            let record = record.to_string_lossy();
            plugins.iter().map(move |plugin| resolved(Path::new(&record.replace("{plugin}", plugin))))
        });
        Self {
            paths: paths.iter().flatten().map(|path| resolved(path)).collect(),
            records: records.collect(),
        }
    }

    /// Returns whether a path in the folder of a project is one of these. A folder around the project has
    /// sources as well.
    fn contains(&self, path: &Path, project: &Path) -> bool {
        let mut paths = self.paths.iter().filter(|written| !project.starts_with(written));
        paths.any(|written| path.starts_with(written))
            || self.records.iter().any(|record| is_record(path, record))
    }
}

/// Returns whether a file has the name of a record, or that of a later one: `a.bin` or `a.2.bin`.
fn is_record(path: &Path, record: &Path) -> bool {
    let is_number = |text: &str| text.chars().all(|char| char.is_ascii_digit());
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let (stem, extension) = match (record.file_stem(), record.extension()) {
        (Some(stem), Some(extension)) => (stem, format!(".{}", extension.to_string_lossy())),
        _ => (record.file_name().unwrap_or_default(), String::new()),
    };
    let number = name.strip_prefix(&*stem.to_string_lossy()).and_then(|rest| rest.strip_suffix(&extension));
    path.parent() == record.parent()
        && number.is_some_and(|it| it.is_empty() || it.strip_prefix('.').is_some_and(is_number))
}

/// Returns an absolute path without links, as those of sources are. The file need not exist.
fn resolved(path: &Path) -> PathBuf {
    let in_folder = || Some(folder(path).canonicalize().ok()?.join(path.file_name()?));
    // The process may create the folder as well.
    let absolute = || std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    path.canonicalize().ok().or_else(in_folder).unwrap_or_else(absolute)
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

    #[test]
    fn what_the_process_writes_is_no_source() {
        let temporary = tempfile::tempdir().unwrap();
        let folder = temporary.path().canonicalize().unwrap();
        let at = |name: &str| folder.join(name);
        std::fs::write(at("requirements.txt"), "").unwrap();
        let paths = [Some(&*at("state")), None, Some(&*at("kubeconfig")), Some(&*folder)];
        let project = Project::open("a", &folder, &at("a.wasm")).unwrap();
        let names = ["a".to_owned(), "b".to_owned()];
        let sources = |record: &Path| {
            let written = Written::new(&paths, Some(record), &names);
            Sources { project: project.clone(), written }
        };
        for (record, writes) in [
            (at("run.bin"), ["run.bin", "run.2.bin", "run.17.bin"]),
            (at("run"), ["run", "run.2", "dev.log"]),
            (at("{plugin}.bin"), ["a.bin", "a.2.bin", "b.bin"]),
        ] {
            let sources = sources(&record);
            let before = sources.state().unwrap();
            std::fs::create_dir_all(at("state")).unwrap();
            for name in writes.into_iter().chain(["state/a", "kubeconfig"]) {
                std::fs::write(at(name), "1").unwrap();
                assert!(sources.state().unwrap() == before, "{}: {name}", record.display());
            }
            for name in writes {
                std::fs::remove_file(at(name)).unwrap();
            }
            for name in ["running.bin", "run.x.bin", "c.bin", "run.2.py"] {
                std::fs::write(at(name), "1").unwrap();
                assert!(sources.state().unwrap() != before, "{}: {name}", record.display());
                std::fs::remove_file(at(name)).unwrap();
            }
        }
    }
}

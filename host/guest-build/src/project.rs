//! A folder whose sources become a component.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};
use schemars::{JsonSchema, generate::SchemaSettings};
use serde::Deserialize;

use crate::Language;
use crate::build::Snapshot;
use crate::embedded::Sources;

/// The file that says which world a plugin in a language other than Rust has. Rust sources say it themselves.
pub(crate) const SETTINGS: &str = "oarlock.toml";

/// The world of a plugin without [`SETTINGS`].
const DEFAULT_WORLD: &str = "handler-plugin";

const WORLDS: [&str; 3] = [DEFAULT_WORLD, "reconciler-plugin", "plugin"];

/// A folder whose sources become a component, and the places of its build.
#[derive(Clone, Debug)]
pub struct Project {
    /// The name, for messages.
    pub name: String,
    /// The folder with the sources.
    pub folder: PathBuf,
    /// The language, which the project file in the folder determines.
    pub language: Language,
    /// The component that a build writes.
    pub component: PathBuf,
    /// The folder for what a build makes before, which is the build's own.
    pub build_folder: PathBuf,
    /// The folder of the WIT package.
    pub wit: PathBuf,
    /// The folder of the SDKs, one folder for each language. They replace the published ones of the same
    /// version.
    pub sdk: PathBuf,
}

/// The content of [`SETTINGS`]. Its comments are the reference for authors.
#[derive(Deserialize, JsonSchema)]
#[schemars(title = "oarlock.toml", description = "How the component of a plugin is built.")]
#[serde(deny_unknown_fields)]
struct Settings {
    /// The world of the contract that the plugin implements. Sources in Rust name it themselves.
    #[serde(default = "default_world")]
    #[schemars(extend("enum" = WORLDS))]
    world: String,
    /// Go: the package with the plugin, such as `./cmd`, if it is not that of the project's folder.
    package: Option<String>,
}

fn default_world() -> String {
    DEFAULT_WORLD.to_owned()
}

// === impl Project ===

impl Project {
    /// Returns a project that is built with the embedded contract and SDK. A build keeps its files in
    /// `FOLDER/.oarlock`.
    ///
    /// # Errors
    ///
    /// When the folder has no project file, or the embedded files cannot be written into the cache.
    pub fn open(name: &str, folder: &Path, component: &Path) -> Result<Self> {
        let Some(language) = Language::of(folder) else {
            bail!(
                "{} has no project file: no Cargo.toml, package.json, requirements.txt, go.mod or *.c",
                folder.display()
            );
        };
        // The tools run in other folders.
        let folder = folder.canonicalize().with_context(|| format!("cannot resolve {}", folder.display()))?;
        let sources = Sources::write()?;
        Ok(Self {
            name: name.to_owned(),
            component: std::path::absolute(component)?,
            build_folder: folder.join(".oarlock/build"),
            folder,
            language,
            wit: sources.wit(),
            sdk: sources.sdk(),
        })
    }

    /// Returns the JSON schema of `oarlock.toml`.
    #[must_use]
    pub fn settings_schema() -> serde_json::Value {
        let settings = SchemaSettings::draft07().with(|settings| settings.inline_subschemas = true);
        settings.into_generator().into_root_schema_for::<Settings>().to_value()
    }

    /// Returns the content of all sources as it is now. Files that `.gitignore` of the folder names, and
    /// paths for which `is_written` returns true, are not sources. The paths begin with the project's folder.
    ///
    /// # Errors
    ///
    /// When a source cannot be read.
    pub fn snapshot(&self, is_written: &dyn Fn(&Path) -> bool) -> Result<Snapshot> {
        Snapshot::of(&self.folder, is_written)
    }

    /// Returns the world of a project in a language other than Rust.
    pub(crate) fn world(&self) -> Result<String> {
        let Settings { world, .. } = self.settings()?;
        if !WORLDS.contains(&world.as_str()) {
            let path = self.folder.join(SETTINGS);
            bail!("{}: there is no world {world:?}; the worlds are {}", path.display(), WORLDS.join(", "));
        }
        Ok(world)
    }

    /// Returns the Go package with the plugin.
    pub(crate) fn main_package(&self) -> Result<String> {
        Ok(self.settings()?.package.unwrap_or_else(|| ".".to_owned()))
    }

    fn settings(&self) -> Result<Settings> {
        let path = self.folder.join(SETTINGS);
        if !path.is_file() {
            return Ok(Settings { world: default_world(), package: None });
        }
        let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        toml::from_str(&text).map_err(|error| explained(&path, &text, &error))
    }
}

/// Returns an error of the settings with file, line and column. A name that is unknown is often misspelt.
fn explained(path: &Path, text: &str, error: &toml::de::Error) -> anyhow::Error {
    let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().map_or(0, |line| line.chars().count()) + 1;
    let quoted: Vec<&str> = error.message().split('`').skip(1).step_by(2).collect();
    let message = match quoted.as_slice() {
        [unknown, known @ ..] if error.message().starts_with("unknown field") => {
            let distance = |name: &&&str| strsim::damerau_levenshtein(unknown, name);
            let nearest = known.iter().min_by_key(distance).filter(|name| distance(name) <= 2);
            let meant = nearest.map(|name| format!("; did you mean `{name}`?")).unwrap_or_default();
            format!("unknown key `{unknown}`{meant} (known keys: {})", known.join(", "))
        }
        _ => error.message().replace('\n', "; "),
    };
    anyhow!("{}:{line}:{column}: {message}", path.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn project(settings: Option<&str>) -> (tempfile::TempDir, Project) {
        let folder = tempfile::tempdir().unwrap();
        if let Some(settings) = settings {
            fs::write(folder.path().join(SETTINGS), settings).unwrap();
        }
        let path = folder.path().to_owned();
        let project = Project {
            name: "a".to_owned(),
            language: Language::Python,
            component: path.join("a.wasm"),
            build_folder: path.join("build"),
            wit: path.join("wit"),
            sdk: path.join("guest-sdk"),
            folder: path,
        };
        (folder, project)
    }

    #[test]
    fn the_world_is_that_of_the_settings() {
        assert_eq!(project(None).1.world().unwrap(), "handler-plugin");
        let (_folder, reconciler) = project(Some("world = \"reconciler-plugin\"\n"));
        assert_eq!(reconciler.world().unwrap(), "reconciler-plugin");
        for wrong in ["world = \"handler\"", "world = \"plugin\"\nlanguage = \"c\""] {
            let (_folder, project) = project(Some(wrong));
            let error = format!("{:#}", project.world().unwrap_err());
            assert!(error.contains("oarlock.toml"), "{wrong}: {error}");
        }
    }

    #[test]
    fn a_wrong_setting_is_shown_with_its_place_and_what_was_meant() {
        let error = |settings: &str| {
            let (folder, project) = project(Some(settings));
            let error = project.world().unwrap_err().to_string();
            error.replace(&format!("{}/", folder.path().display()), "")
        };
        assert_eq!(
            error("# The world.\nwrold = \"plugin\"\n"),
            "oarlock.toml:2:1: unknown key `wrold`; did you mean `world`? (known keys: world, package)"
        );
        assert_eq!(
            error("language = \"c\"\n"),
            "oarlock.toml:1:1: unknown key `language` (known keys: world, package)"
        );
        assert_eq!(
            error("world = [\"plugin\"]\n"),
            "oarlock.toml:1:9: invalid type: sequence, expected a string"
        );
        assert!(error("world = plugin\n").starts_with("oarlock.toml:1:9: "), "{}", error("world = plugin\n"));
    }

    #[test]
    fn a_folder_without_a_project_file_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let error = Project::open("a", folder.path(), Path::new("a.wasm")).unwrap_err();
        assert!(error.to_string().contains("has no project file: no Cargo.toml"), "{error}");
    }
}

//! Writes a new plugin from a template.
//!
//! A template is a plugin of the name `my-plugin` that watches `apps/v1/deployments`: sources that compile as
//! they are. The names are replaced when a plugin is made.

mod name;
mod resource;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use include_dir::Dir;

pub use name::{Name, NameError};
pub use resource::{Resource, ResourceError};

use crate::embedded::{self, TEMPLATES};
use crate::{Language, build};

/// What a plugin does with changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// It is called for each change.
    Handler,
    /// It is called with the keys of changed objects.
    Reconciler,
}

/// The plugin to write.
#[derive(Clone, Debug)]
pub struct NewPlugin {
    /// Its name.
    pub name: Name,
    /// Its language.
    pub language: Language,
    /// Its kind.
    pub kind: Kind,
    /// The resource that it watches.
    pub watch: Resource,
}

// === impl NewPlugin ===

impl NewPlugin {
    /// Writes the files into a folder, which is made. Returns their paths in it, without those of the SDK.
    ///
    /// # Errors
    ///
    /// When a file cannot be written.
    pub fn write(&self, folder: &Path) -> Result<Vec<PathBuf>> {
        let mut paths = vec![];
        for (path, text) in self.files()? {
            embedded::write(&folder.join(&path), text.as_bytes())?;
            paths.push(path);
        }
        build::prepare(self.language, folder)?;
        paths.sort();
        Ok(paths)
    }

    /// Returns the paths and texts of the files.
    fn files(&self) -> Result<Vec<(PathBuf, String)>> {
        let language = self.language.short_name();
        let mut written = vec![];
        for place in
            ["common".to_owned(), format!("{language}/project"), format!("{language}/{}", self.kind.name())]
        {
            let template = template(&place)?;
            for (path, bytes) in embedded::files(template) {
                let path = path.strip_prefix(&place)?;
                let text = std::str::from_utf8(bytes)
                    .with_context(|| format!("the template {} is not text", path.display()))?;
                // Git would read a file of this name among the templates.
                let path = if path == Path::new("gitignore") { Path::new(".gitignore") } else { path };
                written.push((path.to_owned(), self.replace_names(text)));
            }
        }
        Ok(written)
    }

    fn replace_names(&self, template: &str) -> String {
        let Resource { group, version, plural } = &self.watch;
        let names = [
            ("my-plugin", self.name.as_str().to_owned()),
            ("apps/v1/deployments", self.watch.to_string()),
            ("\"apps\"", format!("\"{group}\"")),
            ("\"v1\"", format!("\"{version}\"")),
            ("\"deployments\"", format!("\"{plural}\"")),
        ];
        // In one pass: a new name may be one of the old ones.
        let (mut text, mut rest) = (String::with_capacity(template.len()), template);
        let first = |rest: &str| {
            let found = names.iter().filter_map(|name| Some((rest.find(name.0)?, name)));
            found.min_by_key(|(at, _)| *at)
        };
        while let Some((at, (old, new))) = first(rest) {
            text.push_str(&rest[..at]);
            text.push_str(new);
            rest = &rest[at + old.len()..];
        }
        text + rest
    }
}

fn template(place: &str) -> Result<&'static Dir<'static>> {
    TEMPLATES.get_dir(place).with_context(|| format!("there is no template {place}"))
}

/// Returns whether nothing is at this path, or an empty folder.
///
/// # Errors
///
/// When the folder cannot be read.
pub fn is_free(path: &Path) -> Result<bool> {
    if !path.try_exists().with_context(|| format!("cannot look at {}", path.display()))? {
        return Ok(true);
    }
    if !path.is_dir() {
        return Ok(false);
    }
    let mut entries = fs::read_dir(path).with_context(|| format!("cannot read {}", path.display()))?;
    Ok(entries.next().is_none())
}

// === impl Kind ===

impl Kind {
    const fn name(self) -> &'static str {
        match self {
            Self::Handler => "handler",
            Self::Reconciler => "reconciler",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all() -> impl Iterator<Item = NewPlugin> {
        Language::ALL.into_iter().flat_map(|language| {
            [Kind::Handler, Kind::Reconciler].map(|kind| NewPlugin {
                name: "web-watcher".parse().unwrap(),
                language,
                kind,
                watch: "batch/v1beta1/cronjobs".parse().unwrap(),
            })
        })
    }

    #[test]
    fn no_name_of_a_template_is_left() {
        for plugin in all() {
            for (path, text) in plugin.files().unwrap() {
                // Lock files have names of packages, such as `deployments` never is.
                for name in ["my-plugin", "my_plugin", "\"apps\"", "\"v1\"", "deployments"] {
                    assert!(!text.contains(name), "{:?} {}: {name}", plugin.language, path.display());
                }
            }
        }
    }

    #[test]
    fn a_plugin_may_have_a_name_that_is_in_the_template() {
        for name in ["apps", "deployments", "v1"] {
            for mut plugin in all() {
                plugin.name = name.parse().unwrap();
                let files = plugin.files().unwrap();
                let file = files.iter().find(|(path, _)| path == Path::new("plugin.yaml")).unwrap();
                assert!(file.1.contains(&format!("name: {name}\n")), "{}", file.1);
                let quoted = format!("\"{name}\"");
                assert!(files.iter().any(|(_, text)| text.contains(&quoted)), "{name} {:?}", plugin.language);
            }
        }
    }

    #[test]
    fn each_language_has_a_whole_plugin_of_both_kinds() {
        for plugin in all() {
            let folder = tempfile::tempdir().unwrap();
            let paths = plugin.write(folder.path()).unwrap();
            assert_eq!(Language::of(folder.path()), Some(plugin.language));
            for file in ["plugin.yaml", ".gitignore", "README.md"] {
                assert!(paths.iter().any(|path| path == Path::new(file)), "{file} is not in {paths:?}");
            }
            let ignored = fs::read_to_string(folder.path().join(".gitignore")).unwrap();
            for name in ["*.log", "*.record", "*.wasm"] {
                assert!(ignored.lines().any(|line| line == name), "{name} is not in {ignored}");
            }
            if plugin.language == Language::Go {
                assert!(
                    folder.path().join(".oarlock/go-sdk/go.mod").exists(),
                    "go test works before a build"
                );
            }
            let sources = paths.iter().filter(|path| *path != Path::new("README.md"));
            let mut sources = sources.map(|path| fs::read_to_string(folder.path().join(path)).unwrap());
            let parts = ["\"batch\"", "\"v1beta1\"", "\"cronjobs\""];
            assert!(
                sources.any(|text| {
                    text.contains("\"batch/v1beta1/cronjobs\"")
                        || parts.iter().all(|part| text.contains(part))
                }),
                "no source names the resource"
            );
        }
    }

    #[test]
    fn a_folder_with_files_is_not_free() {
        let folder = tempfile::tempdir().unwrap();
        assert!(is_free(folder.path()).unwrap());
        assert!(is_free(&folder.path().join("new")).unwrap());
        fs::write(folder.path().join("a"), "").unwrap();
        assert!(!is_free(folder.path()).unwrap());
        assert!(!is_free(&folder.path().join("a")).unwrap());
    }
}

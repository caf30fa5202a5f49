//! The small file that stands for one plugin: which component, as whom, with what configuration and limits.
//!
//! A file is read, checked and resolved here; whether the component and the ServiceAccount exist is not looked at.
//! Every error names file, line and key, since a person has to mend it.

mod error;
mod names;

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use oarlock_plugin::Limits;
use serde::Deserialize;

pub use self::error::Error;
use crate::account::Account;

/// One plugin as its operator wrote it down, checked, with nothing left to default.
#[derive(Debug, Clone, PartialEq)]
pub struct PluginFile {
    /// The file that this was read from.
    pub path: PathBuf,
    /// The plugin's name, a DNS label, unique in the host.
    pub name: String,
    /// The component, resolved against the file's folder.
    pub component: PathBuf,
    /// Whom the plugin acts as.
    pub service_account: Account,
    /// What the plugin reads through its `config` import: a JSON object.
    pub config: serde_json::Map<String, serde_json::Value>,
    /// What the plugin may use up.
    pub limits: Limits,
    /// The plugin is told things but its writes answer `suspended`.
    pub suspend: bool,
}

/// What a folder of plugin files holds.
#[derive(Debug, Default)]
pub struct Loaded {
    /// The good files, in the order of their paths.
    pub files: Vec<PluginFile>,
    /// What is wrong with the others.
    pub errors: Vec<Error>,
}

/// The file's text, as serde sees it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Raw {
    name: String,
    component: PathBuf,
    service_account: Account,
    #[serde(default)]
    config: serde_json::Map<String, serde_json::Value>,
    #[serde(default)]
    limits: Limits,
    #[serde(default)]
    suspend: bool,
}

/// Files that other tools own and that may lie in a folder of plugins.
const FOREIGN: &[&str] =
    &["Cargo.toml", "pyproject.toml", "rust-toolchain.toml", "rustfmt.toml", "clippy.toml"];

// === impl PluginFile ===

impl PluginFile {
    /// Reads one plugin file, YAML or TOML by its extension.
    ///
    /// A folder stands for the `plugin.yaml`, `plugin.yml` or `plugin.toml` in it.
    pub fn read(path: &Path) -> Result<Self, Error> {
        let path = match plugin_file_in(path) {
            Some(inner) => inner,
            None if path.is_dir() => return Err(Error::EmptyFolder { path: path.to_owned() }),
            None => path.to_owned(),
        };
        let text =
            std::fs::read_to_string(&path).map_err(|source| Error::Read { path: path.clone(), source })?;
        Self::parse(&path, &text)
    }

    /// Reads the text of a plugin file that lies, or would lie, at `path`.
    pub fn parse(path: &Path, text: &str) -> Result<Self, Error> {
        let raw: Raw = match path.extension().and_then(|extension| extension.to_str()) {
            Some("yaml" | "yml") => {
                serde_norway::from_str(text).map_err(|error| Error::from_yaml(path, &error))?
            }
            Some("toml") => toml::from_str(text).map_err(|error| Error::from_toml(path, text, &error))?,
            _ => return Err(Error::Extension { path: path.to_owned() }),
        };
        let Raw { name, component, service_account, config, limits, suspend } = raw;

        let invalid = |key: &'static str, value: &str, why: names::Invalid| Error::Name {
            path: path.to_owned(),
            line: error::line_of(text, value),
            key,
            value: value.to_owned(),
            why,
        };
        names::dns_label(&name).map_err(|why| invalid("name", &name, why))?;
        names::dns_label(&service_account.namespace)
            .map_err(|why| invalid("serviceAccount.namespace", &service_account.namespace, why))?;
        names::dns_subdomain(&service_account.name)
            .map_err(|why| invalid("serviceAccount.name", &service_account.name, why))?;

        limits.check().map_err(|source| Error::Limits { path: path.to_owned(), source })?;

        let folder = path.parent().unwrap_or(Path::new(""));
        Ok(Self {
            path: path.to_owned(),
            name,
            component: folder.join(component),
            service_account,
            config,
            limits,
            suspend,
        })
    }
}

/// Reads every plugin file in a folder and goes on past the bad ones.
///
/// A plugin file is a `.yaml`, `.yml` or `.toml` file directly in the folder, or the `plugin.*` file of a folder
/// inside it. Of two plugins of one name the first path wins, the other is an error.
pub fn load_dir(dir: &Path) -> Result<Loaded, Error> {
    Ok(load_all(&plugin_files_below(dir)?))
}

/// Reads what each path stands for, and goes on past what is bad.
///
/// A path is a plugin file, the folder of one plugin, or a folder of plugins as [`load_dir`] takes it.
#[must_use]
pub fn load_paths(paths: &[PathBuf]) -> Loaded {
    let mut files = Vec::new();
    let mut errors = Vec::new();
    for path in paths {
        if plugin_file_in(path).is_some() || !path.is_dir() {
            files.push(path.clone());
            continue;
        }
        match plugin_files_below(path) {
            Ok(below) if below.is_empty() => errors.push(Error::EmptyFolder { path: path.clone() }),
            Ok(below) => files.extend(below),
            Err(error) => errors.push(error),
        }
    }
    let mut loaded = load_all(&files);
    errors.append(&mut loaded.errors);
    Loaded { errors, ..loaded }
}

fn load_all(paths: &[PathBuf]) -> Loaded {
    let mut loaded = Loaded::default();
    let mut seen: BTreeMap<String, PathBuf> = BTreeMap::new();
    for path in paths {
        match PluginFile::read(path) {
            Ok(file) => match seen.get(&file.name) {
                Some(first) => loaded.errors.push(Error::Duplicate {
                    path: file.path,
                    name: file.name,
                    first: first.clone(),
                }),
                None => {
                    seen.insert(file.name.clone(), file.path.clone());
                    loaded.files.push(file);
                }
            },
            Err(error) => loaded.errors.push(error),
        }
    }
    loaded
}

/// Whether a path looks like a plugin's file: by its extension, hidden and foreign files aside.
#[must_use]
pub fn is_plugin_file(path: &Path) -> bool {
    let Some(name) = path.file_name().and_then(|name| name.to_str()) else { return false };
    let known = matches!(path.extension().and_then(|it| it.to_str()), Some("yaml" | "yml" | "toml"));
    known && !name.starts_with('.') && !FOREIGN.contains(&name)
}

fn plugin_files_below(dir: &Path) -> Result<Vec<PathBuf>, Error> {
    let read = |source| Error::Read { path: dir.to_owned(), source };
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(dir).map_err(read)? {
        let path = entry.map_err(read)?.path();
        if path.is_dir() {
            paths.extend(plugin_file_in(&path));
        } else if is_plugin_file(&path) {
            paths.push(path);
        }
    }
    paths.sort();
    Ok(paths)
}

fn plugin_file_in(folder: &Path) -> Option<PathBuf> {
    ["plugin.yaml", "plugin.yml", "plugin.toml"]
        .iter()
        .map(|name| folder.join(name))
        .find(|path| path.is_file())
}

#[cfg(test)]
mod tests;

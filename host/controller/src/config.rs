//! Plugin files: each names the component, the ServiceAccount, the configuration and the limits of one
//! plugin.
//!
//! This module reads and validates files and resolves paths. It does not check whether the component and the
//! ServiceAccount exist. Every error names the file, and line and key where known.

mod bounded;
mod error;
pub(crate) mod names;
mod settings;
mod written;

use std::{
    collections::{BTreeMap, BTreeSet},
    panic::{AssertUnwindSafe, catch_unwind},
    path::{Path, PathBuf},
};

use oarlock_plugin::Limits;
use schemars::{JsonSchema, generate::SchemaSettings};
use serde::Deserialize;

pub use self::error::Error;
pub use self::settings::{Instances, Probation};
use crate::{account::Account, regular_file};

/// A validated plugin file, with all defaults applied.
#[derive(Debug, Clone, PartialEq)]
pub struct PluginFile {
    /// The path of the plugin file.
    pub path: PathBuf,
    /// The name of the plugin: a DNS label, unique in the host.
    pub name: String,
    /// The path of the component, resolved against the folder of the plugin file.
    pub component: PathBuf,
    /// The ServiceAccount that the plugin acts as.
    pub service_account: Account,
    /// The JSON object that the plugin reads through its `config` import.
    pub config: serde_json::Map<String, serde_json::Value>,
    /// The limits of the plugin.
    pub limits: Limits,
    /// Whether writes of the plugin fail with `suspended`. Notifications are delivered as usual.
    pub suspend: bool,
    /// The most instances that a stateless plugin has: 1 to 256. More than one is refused for a plugin with
    /// state.
    pub concurrency: u32,
    /// The plugin's share of the CPU time for guests, compared with the weights of the other plugins: 1 to
    /// 1,000.
    pub weight: u32,
    /// When instances are dropped and replaced.
    pub instances: Instances,
    /// How long a new version is watched, and what makes the host switch back.
    pub probation: Probation,
    /// The path of a component that runs as shadow, resolved against the folder of the plugin file.
    pub shadow: Option<PathBuf>,
}

/// The plugin files that were read, and the errors of the others.
#[derive(Debug, Default)]
pub struct Loaded {
    /// The valid files, sorted by path.
    pub files: Vec<PluginFile>,
    /// The errors of the other files.
    pub errors: Vec<Error>,
}

/// A plugin file before validation. Its comments are the reference for authors of plugin files.
#[derive(Deserialize, JsonSchema)]
#[schemars(title = "plugin.yaml", description = "How the host runs one plugin.")]
#[serde(
    deny_unknown_fields,
    rename_all = "camelCase",
    expecting = "a mapping with the keys `name`, `component` and `serviceAccount`"
)]
struct RawFile {
    /// The plugin's name: a DNS label, unique in the host.
    #[schemars(length(min = 1, max = 63))]
    name: String,
    /// The path of the component, relative to the file.
    component: PathBuf,
    /// The ServiceAccount that the plugin reads and writes as.
    service_account: Account,
    /// A mapping that the plugin reads.
    #[serde(default, deserialize_with = "bounded::mapping")]
    #[schemars(with = "Option<serde_json::Map<String, serde_json::Value>>")]
    config: serde_json::Map<String, serde_json::Value>,
    /// What the plugin may use.
    #[serde(default)]
    limits: Limits,
    /// `true`: the plugin's writes fail with `suspended`, while it receives its notifications as usual. (The
    /// command `oarlock suspend` is another thing: it stops the plugin's calls.)
    #[serde(default)]
    suspend: bool,
    /// The most instances of a stateless plugin, and so the most calls at once. Calls about one object or key
    /// never overlap. More than 1 for a plugin with state is refused.
    #[serde(default = "settings::default_concurrency")]
    #[schemars(range(min = 1, max = settings::MAX_CONCURRENCY))]
    concurrency: u32,
    /// The plugin's share of the CPU time for guests, compared with the weights of the other plugins. It
    /// matters only while more guests want to run than the host has workers.
    #[serde(default = "settings::default_weight")]
    #[schemars(range(min = 1, max = settings::MAX_WEIGHT))]
    weight: u32,
    /// When instances are dropped and replaced.
    #[serde(default)]
    instances: Instances,
    /// How long a new version is watched, and what makes the host switch back.
    #[serde(default)]
    probation: Probation,
    /// The path of a component that runs beside the plugin on the same events, with its writes withheld;
    /// relative to the file.
    shadow: Option<PathBuf>,
}

/// Facts beside the files that reading them depends on.
#[derive(Clone, Copy, Default)]
pub struct Circumstances<'a> {
    /// The loaded plugins, and the file of each. A plugin keeps its name if another file uses it.
    pub owners: Option<&'a BTreeMap<String, PathBuf>>,
    /// Returns the account for a component without a plugin file. Without it such components are refused.
    pub account_of: Option<AccountOf<'a>>,
}

/// Returns the account of a plugin of this name, or none.
pub type AccountOf<'a> = &'a dyn Fn(&str) -> Option<Account>;

/// Files of other tools that may lie in a folder of plugins.
const FOREIGN: &[&str] =
    &["Cargo.toml", "pyproject.toml", "rust-toolchain.toml", "rustfmt.toml", "clippy.toml"];

// === impl PluginFile ===

impl PluginFile {
    /// Reads one plugin file: YAML or TOML, by its extension.
    ///
    /// For a folder it reads the `plugin.yaml`, `plugin.yml` or `plugin.toml` in it.
    pub fn read(path: &Path) -> Result<Self, Error> {
        let path = match plugin_file_in(path) {
            Some(inner) => inner,
            None if path.is_dir() && !is_plugin_file(path) => {
                return Err(Error::EmptyFolder { path: path.to_owned() });
            }
            None => path.to_owned(),
        };
        let unread = |source| Error::Read { path: path.clone(), source };
        let bytes = regular_file::read(&path, bounded::MAX_BYTES as u64).map_err(unread)?;
        let text = String::from_utf8(bytes).map_err(|_| Error::NotText { path: path.clone() })?;
        Self::parse(&path, &text)
    }

    /// Returns the plugin for a component without a plugin file: named after the component, without
    /// configuration.
    fn of_component(path: &Path, account_of: AccountOf<'_>) -> Result<Self, Error> {
        let refused = || Error::BareComponent { path: path.to_owned() };
        let name = names::dns_label_from(&path.file_stem().unwrap_or_default().to_string_lossy());
        let name = name.ok_or_else(refused)?;
        Ok(Self {
            path: path.to_owned(),
            service_account: account_of(&name).ok_or_else(refused)?,
            name,
            component: path.to_owned(),
            config: serde_json::Map::new(),
            limits: Limits::default(),
            suspend: false,
            concurrency: settings::default_concurrency(),
            weight: settings::default_weight(),
            instances: Instances::default(),
            probation: Probation::default(),
            shadow: None,
        })
    }

    /// Returns the JSON schema of plugin files. A range that JSON Schema cannot express is a text, `x-range`.
    #[must_use]
    pub fn schema() -> serde_json::Value {
        let settings = SchemaSettings::draft07().with(|settings| settings.inline_subschemas = true);
        settings.into_generator().into_root_schema_for::<RawFile>().to_value()
    }

    /// Parses and validates the text of a plugin file. `path` need not exist.
    pub fn parse(path: &Path, text: &str) -> Result<Self, Error> {
        if let Some(line) = bounded::too_deep(text) {
            let place = error::Place { line, column: 0 };
            return Err(Error::Parse { path: path.to_owned(), place, message: bounded::nesting_message() });
        }
        let raw: RawFile = match path.extension().and_then(|extension| extension.to_str()) {
            Some("yaml" | "yml") => {
                serde_norway::from_str(text).map_err(|error| Error::from_yaml(path, &error))?
            }
            Some("toml") => toml::from_str(text).map_err(|error| Error::from_toml(path, text, &error))?,
            _ => return Err(Error::Extension { path: path.to_owned() }),
        };
        Self::validated(path, text, raw)
    }

    fn validated(path: &Path, text: &str, raw: RawFile) -> Result<Self, Error> {
        let RawFile {
            name,
            component,
            service_account,
            config,
            limits,
            suspend,
            concurrency,
            weight,
            instances,
            probation,
            shadow,
        } = raw;

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
        settings::check(concurrency, weight, &instances, &probation)
            .map_err(|source| Error::Setting { path: path.to_owned(), source })?;

        let folder = path.parent().unwrap_or(Path::new(""));
        Ok(Self {
            path: path.to_owned(),
            name,
            component: folder.join(component),
            service_account,
            config,
            limits,
            suspend,
            concurrency,
            weight,
            instances,
            probation,
            shadow: shadow.map(|it| folder.join(it)),
        })
    }
}

/// Reads every plugin file in a folder. Invalid files become errors in the result.
///
/// A plugin file is a `.yaml`, `.yml` or `.toml` file directly in the folder, or the `plugin.*` file of a
/// folder inside it. If two files have the same plugin name, the second by path is an error.
pub fn load_dir(dir: &Path) -> Result<Loaded, Error> {
    Ok(load_all(plugin_files_below(dir)?, Circumstances::default()))
}

/// Reads the plugin files at all paths. Invalid files become errors in the result.
///
/// A path is a plugin file, the folder of one plugin, or a folder of plugins as for [`load_dir`].
#[must_use]
pub fn load_paths(paths: &[PathBuf]) -> Loaded {
    load_paths_under(paths, Circumstances::default())
}

/// As [`load_paths`], under the given circumstances.
#[must_use]
pub fn load_paths_under(paths: &[PathBuf], circumstances: Circumstances<'_>) -> Loaded {
    let mut files = Vec::new();
    let mut errors = Vec::new();
    for path in paths {
        if plugin_file_in(path).is_some() || !path.is_dir() || is_plugin_file(path) {
            files.push(path.clone());
            continue;
        }
        match plugin_files_below(path) {
            Ok(below) if below.is_empty() => errors.push(Error::EmptyFolder { path: path.clone() }),
            Ok(below) => files.extend(below),
            Err(error) => errors.push(error),
        }
    }
    let mut loaded = load_all(files, circumstances);
    errors.append(&mut loaded.errors);
    Loaded { errors, ..loaded }
}

fn load_all(mut paths: Vec<PathBuf>, circumstances: Circumstances<'_>) -> Loaded {
    let Circumstances { owners, account_of } = circumstances;
    // A file may be named twice: by its own path and by its folder.
    let mut seen = BTreeSet::new();
    paths.retain(|path| {
        let file = plugin_file_in(path).unwrap_or_else(|| path.clone());
        seen.insert(file.canonicalize().unwrap_or(file))
    });
    let read = |path: &PathBuf| match account_of {
        _ if !is_component(path) => PluginFile::read(path),
        Some(account_of) => PluginFile::of_component(path, account_of),
        None => Err(Error::BareComponent { path: path.clone() }),
    };
    let read_safely = |path: &PathBuf| {
        // A panic of a parser is an error of that file only.
        catch_unwind(AssertUnwindSafe(|| read(path))).unwrap_or_else(|_| {
            let message = "the file cannot be parsed: the parser panicked".to_owned();
            Err(Error::Parse { path: path.clone(), place: error::Place::default(), message })
        })
    };
    let read: Vec<_> = paths.iter().map(read_safely).collect();
    // A loaded plugin keeps its name while its file exists, even if the file is malformed.
    let still_owns = |name: &str, owner: &Path| {
        read.iter().any(|it| match it {
            Ok(file) => file.path == owner && file.name == name,
            Err(error) => error.path() == owner,
        })
    };
    let owners = owners.into_iter().flatten().filter(|(name, owner)| still_owns(name, owner));
    let mut taken: BTreeMap<String, PathBuf> =
        owners.map(|(name, owner)| (name.clone(), owner.clone())).collect();
    let mut loaded = Loaded::default();
    for it in read {
        let file = match it {
            Ok(file) => file,
            Err(error) => {
                loaded.errors.push(error);
                continue;
            }
        };
        let first = taken.entry(file.name.clone()).or_insert_with(|| file.path.clone());
        if *first == file.path {
            loaded.files.push(file);
        } else {
            let first = first.clone();
            loaded.errors.push(Error::Duplicate { path: file.path, name: file.name, first });
        }
    }
    loaded
}

/// Returns whether a path has the extension of a plugin file, and is neither hidden nor a file of another
/// tool.
#[must_use]
pub fn is_plugin_file(path: &Path) -> bool {
    // The name may contain bytes that are not UTF-8.
    let Some(name) = path.file_name() else { return false };
    let known = matches!(path.extension().and_then(|it| it.to_str()), Some("yaml" | "yml" | "toml"));
    known && !is_hidden(path) && !FOREIGN.iter().any(|foreign| name == *foreign)
}

/// Returns whether a path has the extension of a component, and is not a folder.
#[must_use]
pub fn is_component(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "wasm") && !path.is_dir()
}

fn is_hidden(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."))
}

fn plugin_files_below(dir: &Path) -> Result<Vec<PathBuf>, Error> {
    let read = |source: std::io::Error| Error::Read { path: dir.to_owned(), source: source.into() };
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(dir).map_err(read)? {
        let path = entry.map_err(read)?.path();
        if let Some(inner) = plugin_file_in(&path).filter(|_| !is_hidden(&path)) {
            paths.push(inner);
        } else if is_plugin_file(&path) {
            // This includes a folder with such a name, so that it is an error and not ignored.
            paths.push(path);
        }
    }
    paths.sort();
    Ok(paths)
}

/// Returns whether a folder is that of one plugin: whether the plugin's file is in it.
#[must_use]
pub fn is_of_one_plugin(folder: &Path) -> bool {
    plugin_file_in(folder).is_some()
}

fn plugin_file_in(folder: &Path) -> Option<PathBuf> {
    ["plugin.yaml", "plugin.yml", "plugin.toml"]
        .iter()
        .map(|name| folder.join(name))
        // This includes a FIFO or a dangling link, so that reading it is an error.
        .find(|path| path.symlink_metadata().is_ok() && !path.is_dir())
}

#[cfg(test)]
mod tests;

//! Finds and reads the plugin files at paths and in folders.

use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Deserialize;
use serde::de::IgnoredAny;

use super::{Error, PluginFile, bounded, error};
use crate::{account::Account, regular_file, yaml};

/// The plugin files that were read, and the errors of the others.
#[derive(Debug, Default)]
pub struct Loaded {
    /// The valid files, sorted by path.
    pub files: Vec<PluginFile>,
    /// The errors of the other files.
    pub errors: Vec<Error>,
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

/// The names of the file of a plugin that has a folder of its own.
const NAMES: [&str; 3] = ["plugin.yaml", "plugin.yml", "plugin.toml"];

/// Files of other tools, and of a plugin's build, that may lie in a folder of plugins.
const FOREIGN: &[&str] =
    &["Cargo.toml", "oarlock.toml", "pyproject.toml", "rust-toolchain.toml", "rustfmt.toml", "clippy.toml"];

/// What is in a folder of plugins.
struct Below {
    files: Vec<PathBuf>,
    /// The errors of plugin files that are not read, because they are in a subfolder and have another name.
    misplaced: Vec<Error>,
}

/// Keys that every plugin file has. Few files of other tools have all of them: the values of a Helm chart
/// have a `serviceAccount` without a namespace.
#[derive(Deserialize)]
struct RequiredKeys {
    #[serde(rename = "component")]
    _component: String,
    #[serde(rename = "serviceAccount")]
    _service_account: AccountKeys,
}

#[derive(Deserialize)]
struct AccountKeys {
    #[serde(rename = "namespace")]
    _namespace: IgnoredAny,
    #[serde(rename = "name")]
    _name: IgnoredAny,
}

// === impl Loaded ===

impl Loaded {
    /// Adds the plugins that objects define. A plugin file keeps its name, also one of the `owners` that is
    /// malformed now.
    pub(crate) fn add(
        &mut self,
        definitions: &BTreeMap<Arc<str>, Arc<PluginFile>>,
        owners: &BTreeMap<String, PathBuf>,
    ) {
        let is_malformed = |owner: &Path| self.errors.iter().any(|error| error.path() == owner);
        let malformed = owners.iter().filter(|(_, owner)| is_malformed(owner));
        let malformed = malformed.map(|(name, owner)| (name.clone(), owner.clone()));
        let files = self.files.iter().map(|file| (file.name.clone(), file.path.clone()));
        let taken: BTreeMap<_, _> = malformed.chain(files).collect();
        for file in definitions.values() {
            match taken.get(&file.name) {
                None => self.files.push(PluginFile::clone(file)),
                Some(first) => self.errors.push(Error::Duplicate {
                    path: file.path.clone(),
                    name: file.name.clone(),
                    first: first.clone(),
                }),
            }
        }
    }
}

/// Reads every plugin file in a folder. Invalid files become errors in the result.
///
/// A plugin file is a `.yaml`, `.yml` or `.toml` file directly in the folder, or the `plugin.*` file of a
/// folder inside it. A plugin file with another name in a folder inside it is an error. If two files have the
/// same plugin name, the second by path is an error.
pub fn load_dir(dir: &Path) -> Result<Loaded, Error> {
    let Below { files, misplaced } = plugin_files_below(dir)?;
    let mut loaded = load_all(files, Circumstances::default());
    loaded.errors.extend(misplaced);
    Ok(loaded)
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
    let (mut files, mut errors, mut misplaced) = (Vec::new(), Vec::new(), Vec::new());
    for path in paths {
        if plugin_file_in(path).is_some() || !path.is_dir() || is_plugin_file(path) {
            files.push(path.clone());
            continue;
        }
        match plugin_files_below(path) {
            Ok(below) if below.files.is_empty() && below.misplaced.is_empty() => {
                errors.push(Error::EmptyFolder { path: path.clone() });
            }
            Ok(below) => {
                files.extend(below.files);
                misplaced.extend(below.misplaced);
            }
            Err(error) => errors.push(error),
        }
    }
    if !misplaced.is_empty() {
        // Another path of the command line may name the file, or its folder.
        let canonical = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let read: BTreeSet<_> = files.iter().map(|it| canonical(it)).collect();
        errors.extend(misplaced.into_iter().filter(|error| !read.contains(&canonical(error.path()))));
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

fn plugin_files_below(dir: &Path) -> Result<Below, Error> {
    let read = |source: std::io::Error| Error::Read { path: dir.to_owned(), source: source.into() };
    let mut below = Below { files: Vec::new(), misplaced: Vec::new() };
    for entry in std::fs::read_dir(dir).map_err(read)? {
        let path = entry.map_err(read)?.path();
        if let Some(inner) = plugin_file_in(&path).filter(|_| !is_hidden(&path)) {
            below.files.push(inner);
        } else if is_plugin_file(&path) {
            // This includes a folder with such a name, so that it is an error and not ignored.
            below.files.push(path);
        } else if !is_hidden(&path) {
            let misplaced = misplaced_in(&path).map(|path| Error::Misplaced { path, folder: dir.to_owned() });
            below.misplaced.extend(misplaced);
        }
    }
    below.files.sort();
    below.misplaced.sort_by(|one, other| one.path().cmp(other.path()));
    Ok(below)
}

/// Returns the plugin files directly in a subfolder without a file of the names that are read there. A path
/// that is no folder, or cannot be read, has none.
fn misplaced_in(subfolder: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    let entries = std::fs::read_dir(subfolder).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).filter(|path| is_plugin_file(path) && has_required_keys(path))
}

/// Returns whether a file has the keys of a plugin file. Files of other tools in YAML and TOML have not.
fn has_required_keys(path: &Path) -> bool {
    let Ok(bytes) = regular_file::read(path, bounded::MAX_BYTES as u64) else { return false };
    let Ok(text) = std::str::from_utf8(&bytes) else { return false };
    let text = yaml::without_byte_order_mark(text);
    if bounded::too_deep(text).is_some() {
        return false;
    }
    let is_toml = path.extension().is_some_and(|extension| extension == "toml");
    let has_keys = || match is_toml {
        true => toml::from_str::<RequiredKeys>(text).is_ok(),
        false => serde_norway::from_str::<RequiredKeys>(text).is_ok(),
    };
    // A file at which a parser panics is not known to be a plugin file.
    catch_unwind(has_keys).unwrap_or(false)
}

/// Returns whether a folder is that of one plugin: whether the plugin's file is in it.
#[must_use]
pub fn is_of_one_plugin(folder: &Path) -> bool {
    plugin_file_in(folder).is_some()
}

pub(super) fn plugin_file_in(folder: &Path) -> Option<PathBuf> {
    NAMES
        .iter()
        .map(|name| folder.join(name))
        // This includes a FIFO or a dangling link, so that reading it is an error.
        .find(|path| path.symlink_metadata().is_ok() && !path.is_dir())
}

//! Finds and reads the plugin files at paths and in folders.

use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{Error, PluginFile, error};
use crate::account::Account;

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

/// Files of other tools, and of a plugin's build, that may lie in a folder of plugins.
const FOREIGN: &[&str] =
    &["Cargo.toml", "oarlock.toml", "pyproject.toml", "rust-toolchain.toml", "rustfmt.toml", "clippy.toml"];

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

pub(super) fn plugin_file_in(folder: &Path) -> Option<PathBuf> {
    ["plugin.yaml", "plugin.yml", "plugin.toml"]
        .iter()
        .map(|name| folder.join(name))
        // This includes a FIFO or a dangling link, so that reading it is an error.
        .find(|path| path.symlink_metadata().is_ok() && !path.is_dir())
}

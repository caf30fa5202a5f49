//! Records the inputs and the bytes of a component, so that it is built again only if one of them changed.

use std::ffi::OsStr;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::{Outcome, is_source, outputs::Outputs};
use crate::Project;

/// Files in a project that are no inputs of its build.
const NO_INPUTS: [&str; 2] = ["README.md", "plugin.yaml"];

/// The folder of the cases of `oarlock plugin test`, which are no inputs either.
const CASES: &str = "cases";

/// The extensions of files that are no inputs: components, and what `oarlock dev` and others write while they
/// run. Without this rule, a build of a log file's folder changes the log, and the next build begins.
const NO_INPUT_EXTENSIONS: [&str; 3] = ["log", "record", "wasm"];

/// Calls `build` unless the component has the bytes that were built from the same inputs: the project's
/// folder, the WIT package, the SDK of its language, and `recipe`, which represents the tools and their
/// arguments.
pub(super) fn unless_unchanged(
    project: &Project,
    recipe: &str,
    build: impl FnOnce() -> Result<Outcome>,
) -> Result<Outcome> {
    unless_unchanged_with(project, &[recipe], &[], build)
}

/// Like [`unless_unchanged`], with several texts in place of one, and other folders that are inputs.
pub(super) fn unless_unchanged_with(
    project: &Project,
    recipe: &[&str],
    folders: &[PathBuf],
    build: impl FnOnce() -> Result<Outcome>,
) -> Result<Outcome> {
    let mut hasher = DefaultHasher::new();
    recipe.hash(&mut hasher);
    for folder in folders {
        hash_folder(folder, &mut hasher, true)?;
    }
    include_str!("../toolchain/versions.rs").hash(&mut hasher);
    env!("CARGO_PKG_VERSION").hash(&mut hasher);
    resolved(&project.component).hash(&mut hasher);
    hash_folder(&project.wit, &mut hasher, false)?;
    let sdk = project.sdk.join(project.language.sdk());
    if sdk.is_dir() {
        hash_folder(&sdk, &mut hasher, true)?;
    }
    hash_folder(&project.folder, &mut hasher, true)?;
    let inputs = hasher.finish();
    let stamp = || Some(format!("{inputs:016x} {:016x}", hash_file(&project.component).ok()?));

    let path = project.build_folder.join("stamp");
    if stamp().is_some_and(|now| fs::read_to_string(&path).is_ok_and(|then| then == now)) {
        return Ok(Outcome::Unchanged);
    }
    let outcome = build()?;
    let now = stamp().with_context(|| format!("cannot read {}", project.component.display()))?;
    fs::write(&path, now).with_context(|| format!("cannot write {}", path.display()))?;
    Ok(outcome)
}

/// Returns the path of a component without `..` and links, so that each way to name it gives the same stamp.
fn resolved(component: &Path) -> PathBuf {
    let folder = component.parent().and_then(|folder| fs::canonicalize(folder).ok());
    match (folder, component.file_name()) {
        (Some(folder), Some(name)) => folder.join(name),
        // A build creates the folder.
        _ => component.to_owned(),
    }
}

pub(super) fn hash_file(path: &Path) -> std::io::Result<u64> {
    let mut hasher = DefaultHasher::new();
    fs::read(path)?.hash(&mut hasher);
    Ok(hasher.finish())
}

fn hash_folder(folder: &Path, hasher: &mut DefaultHasher, is_at_root: bool) -> Result<()> {
    let outputs = Outputs::of_process();
    for path in inputs(folder, is_at_root, &|path, _| outputs.contain(path))? {
        path.file_name().unwrap_or_default().hash(hasher);
        if !path.is_dir() {
            fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?.hash(hasher);
        }
    }
    Ok(())
}

/// Returns the files and folders that are inputs, each folder before its content. `is_excluded` is called
/// with a path, and with whether it is a folder.
pub(super) fn inputs(
    folder: &Path,
    is_at_root: bool,
    is_excluded: &dyn Fn(&Path, bool) -> bool,
) -> Result<Vec<PathBuf>> {
    let mut paths = vec![];
    for entry in fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))? {
        paths.push(entry?.path());
    }
    paths.sort();
    let mut inputs = vec![];
    for path in paths {
        let is_folder = path.is_dir();
        if !is_input(&path, is_at_root, is_folder) || is_excluded(&path, is_folder) {
            continue;
        }
        inputs.push(path.clone());
        if is_folder {
            inputs.extend(self::inputs(&path, false, is_excluded)?);
        }
    }
    Ok(inputs)
}

fn is_input(path: &Path, is_at_root: bool, is_folder: bool) -> bool {
    let name = path.file_name().unwrap_or_default();
    let is_any = |names: &[&str], name: &OsStr| names.iter().any(|other| name == *other);
    let is_case = is_at_root && name == CASES;
    let has_no_input = path.extension().is_some_and(|it| is_any(&NO_INPUT_EXTENSIONS, it)) && !is_folder;
    is_source(name, is_at_root) && !is_case && !is_any(&NO_INPUTS, name) && !has_no_input
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hash(folder: &Path) -> u64 {
        let mut hasher = DefaultHasher::new();
        hash_folder(folder, &mut hasher, true).unwrap();
        hasher.finish()
    }

    #[test]
    fn the_hash_covers_every_input_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let source = folder.path().join("src/hello.c");
        fs::create_dir(folder.path().join("src")).unwrap();
        fs::write(&source, "a").unwrap();
        let before = hash(folder.path());

        fs::create_dir(folder.path().join("node_modules")).unwrap();
        fs::write(folder.path().join("node_modules/x"), "").unwrap();
        for name in ["hello.wasm", "dev.log", "src/dev.log", "run.record", "run.2.record"] {
            fs::write(folder.path().join(name), "").unwrap();
        }
        fs::write(folder.path().join("plugin.yaml"), "").unwrap();
        fs::create_dir(folder.path().join(".mypy_cache")).unwrap();
        fs::write(folder.path().join(".mypy_cache/x"), "").unwrap();
        fs::create_dir(folder.path().join("cases")).unwrap();
        fs::write(folder.path().join("cases/first.yaml"), "").unwrap();
        assert_eq!(hash(folder.path()), before);

        // A source may be generated, and so not in Git.
        fs::write(folder.path().join(".gitignore"), "generated.c\n").unwrap();
        fs::write(folder.path().join("generated.c"), "").unwrap();
        assert_ne!(hash(folder.path()), before);
        fs::remove_file(folder.path().join("generated.c")).unwrap();

        fs::write(&source, "b").unwrap();
        let changed = hash(folder.path());
        assert_ne!(changed, before);

        fs::rename(&source, folder.path().join("src/hi.c")).unwrap();
        assert_ne!(hash(folder.path()), changed);
    }

    #[test]
    fn a_component_that_is_not_that_of_the_last_build_is_built_again() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        for name in ["wit", "project", "build"] {
            fs::create_dir(at(name)).unwrap();
        }
        let mut project = Project {
            name: "a".to_owned(),
            language: crate::Language::C,
            component: at("a.wasm"),
            build_folder: at("build"),
            wit: at("wit"),
            folder: at("project"),
            sdk: at("guest-sdk"),
        };
        let build = |project: &Project| {
            unless_unchanged(project, "", || {
                fs::write(&project.component, "built").unwrap();
                Ok(Outcome::Written)
            })
            .unwrap()
        };
        assert_eq!([build(&project), build(&project)], [Outcome::Written, Outcome::Unchanged]);
        fs::write(at("a.wasm"), "junk").unwrap();
        assert_eq!([build(&project), build(&project)], [Outcome::Written, Outcome::Unchanged]);
        project.component = at("project/../a.wasm");
        assert_eq!(build(&project), Outcome::Unchanged, "the same component by another path");
        fs::write(at("b.wasm"), "older").unwrap();
        project.component = at("b.wasm");
        assert_eq!(build(&project), Outcome::Written, "another component");
    }
}

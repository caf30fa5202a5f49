//! Records the inputs of a component, so that it is built again only if an input changed.

use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;

use anyhow::{Context, Result};

use super::{NO_SOURCES, Outcome};
use crate::Project;

/// Files in a project that are no inputs of its build.
const NO_INPUTS: [&str; 3] = ["README.md", "plugin.yaml", ".gitignore"];

/// Calls `build` unless the component was built from the same inputs: the project's folder, the WIT package,
/// and `recipe`, which represents the tools and their arguments.
pub(super) fn unless_unchanged(
    project: &Project,
    recipe: &str,
    build: impl FnOnce() -> Result<Outcome>,
) -> Result<Outcome> {
    let mut hasher = DefaultHasher::new();
    recipe.hash(&mut hasher);
    include_str!("../toolchain/versions.rs").hash(&mut hasher);
    hash_folder(&project.wit, &mut hasher)?;
    hash_folder(&project.folder, &mut hasher)?;
    let now = format!("{:016x}", hasher.finish());

    let path = project.build_folder.join("stamp");
    if project.component.is_file() && fs::read_to_string(&path).is_ok_and(|then| then == now) {
        return Ok(Outcome::Unchanged);
    }
    let outcome = build()?;
    fs::write(&path, now).with_context(|| format!("cannot write {}", path.display()))?;
    Ok(outcome)
}

fn hash_folder(folder: &Path, hasher: &mut DefaultHasher) -> Result<()> {
    let mut paths = vec![];
    for entry in fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))? {
        paths.push(entry?.path());
    }
    paths.sort();
    for path in paths {
        let name = path.file_name().unwrap_or_default();
        let is_input = !NO_SOURCES.iter().chain(&NO_INPUTS).any(|ignored| name == *ignored);
        let is_component = path.extension().is_some_and(|extension| extension == "wasm");
        if !is_input || is_component {
            continue;
        }
        name.hash(hasher);
        if path.is_dir() {
            hash_folder(&path, hasher)?;
        } else {
            fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?.hash(hasher);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hash(folder: &Path) -> u64 {
        let mut hasher = DefaultHasher::new();
        hash_folder(folder, &mut hasher).unwrap();
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
        fs::write(folder.path().join("hello.wasm"), "").unwrap();
        fs::write(folder.path().join("plugin.yaml"), "").unwrap();
        assert_eq!(hash(folder.path()), before);

        fs::write(&source, "b").unwrap();
        let changed = hash(folder.path());
        assert_ne!(changed, before);

        fs::rename(&source, folder.path().join("src/hi.c")).unwrap();
        assert_ne!(hash(folder.path()), changed);
    }
}

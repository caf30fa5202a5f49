//! Records the inputs of each component, so that a guest is rebuilt only if an input changed.

use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;

use anyhow::{Context, Result};

use super::Guest;
use crate::checkout;

/// Files of editors and package managers in a guest's folder, which are not inputs.
const IGNORED: [&str; 4] = ["node_modules", "target", "__pycache__", "README.md"];

/// Calls `build` unless the guest's component was built from the same inputs: the guest's folder, the WIT
/// package, and `recipe`, which represents the tools and their arguments.
pub(super) fn unless_unchanged(
    guest: &Guest,
    recipe: &str,
    build: impl FnOnce() -> Result<()>,
) -> Result<()> {
    let mut hasher = DefaultHasher::new();
    recipe.hash(&mut hasher);
    include_str!("../toolchain/versions.rs").hash(&mut hasher);
    hash_folder(&checkout::wit(), &mut hasher)?;
    hash_folder(&guest.folder, &mut hasher)?;
    let now = format!("{:016x}", hasher.finish());

    let path = checkout::guest_build(&guest.name).join("stamp");
    let is_built = checkout::guests().join(format!("{}.wasm", guest.name)).is_file();
    if is_built && fs::read_to_string(&path).is_ok_and(|then| then == now) {
        return Ok(());
    }
    build()?;
    fs::write(&path, now).with_context(|| format!("cannot write {}", path.display()))
}

fn hash_folder(folder: &Path, hasher: &mut DefaultHasher) -> Result<()> {
    let mut paths = vec![];
    for entry in fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))? {
        paths.push(entry?.path());
    }
    paths.sort();
    for path in paths {
        let name = path.file_name().unwrap_or_default();
        if IGNORED.iter().any(|ignored| name == *ignored) {
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
        assert_eq!(hash(folder.path()), before);

        fs::write(&source, "b").unwrap();
        let changed = hash(folder.path());
        assert_ne!(changed, before);

        fs::rename(&source, folder.path().join("src/hi.c")).unwrap();
        assert_ne!(hash(folder.path()), changed);
    }
}

//! Remembers from which inputs a component was made, so that it is made again only if one of them changed.

use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;

use anyhow::{Context, Result};

use super::Guest;
use crate::checkout;

/// What editors and package managers leave in a guest's folder, which is no input.
const NO_INPUT: [&str; 4] = ["node_modules", "target", "__pycache__", "README.md"];

/// Calls `build` unless the guest's component was made from the same inputs: its folder, the contract, and `recipe`, which
/// stands for the tools and how they are called.
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
        if NO_INPUT.iter().any(|no_input| name == *no_input) {
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

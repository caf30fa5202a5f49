//! Builds a project with the tools of its language.
//!
//! A component that did not change is not written, so that a running host does not load it again. In Rust, Go
//! and C the same sources give the same bytes. Components in Python and JavaScript are snapshots of an engine
//! that took random numbers from WASI when it started, so they differ; they are not built without a change.

mod c;
mod go;
mod js;
mod python;
mod rust;
mod stamp;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

use crate::toolchain::cache;
use crate::{Language, Project, progress};

/// Folders in a project that are no sources: of package managers, editors and builds.
const NO_SOURCES: [&str; 8] =
    [".git", ".oarlock", ".venv", "__pycache__", "node_modules", "target", "types", "venv"];

/// What a build did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The component is of the same bytes as before.
    Unchanged,
    /// The component was written.
    Written,
}

/// Builds a project, unless nothing has changed since its last build.
///
/// # Errors
///
/// When a tool is missing and cannot be fetched, or reports an error; the error has the end of its output.
pub fn build(project: &Project) -> Result<Outcome> {
    let Project { name, language, build_folder, .. } = project;
    let _lock = cache::lock(&build_folder.with_extension("lock"), name)?;
    match language {
        // Cargo detects changes.
        Language::Rust => rust::build(project),
        Language::C => stamp::unless_unchanged(project, include_str!("build/c.rs"), || c::build(project)),
        Language::Go => stamp::unless_unchanged(project, include_str!("build/go.rs"), || go::build(project)),
        Language::JavaScript | Language::TypeScript => {
            stamp::unless_unchanged(project, include_str!("build/js.rs"), || js::build(project))
        }
        Language::Python => {
            stamp::unless_unchanged(project, include_str!("build/python.rs"), || python::build(project))
        }
    }
}

/// Writes a component to its place, unless the place has the same bytes.
///
/// # Errors
///
/// When the file is no component, or cannot be written.
pub fn install(built: &Path, place: &Path) -> Result<Outcome> {
    let bytes = fs::read(built).with_context(|| format!("cannot read {}", built.display()))?;
    ensure!(bytes.starts_with(b"\0asm\x0d\0\x01\0"), "{} is not a component", built.display());
    if fs::read(place).is_ok_and(|there| there == bytes) {
        return Ok(Outcome::Unchanged);
    }
    if let Some(parent) = place.parent() {
        fs::create_dir_all(parent).with_context(|| format!("cannot create {}", parent.display()))?;
    }
    let partial = place.with_extension("wasm.partial");
    fs::write(&partial, &bytes).with_context(|| format!("cannot write {}", partial.display()))?;
    fs::rename(&partial, place).with_context(|| format!("cannot write {}", place.display()))?;
    let name = place.file_name().unwrap_or_default().to_string_lossy();
    progress::say(format!("{name}: {} KiB", bytes.len() / 1024));
    Ok(Outcome::Written)
}

/// Creates an empty folder, and removes its old content.
fn fresh_folder(path: &Path) -> Result<PathBuf> {
    if path.exists() {
        fs::remove_dir_all(path).with_context(|| format!("cannot remove {}", path.display()))?;
    }
    fs::create_dir_all(path).with_context(|| format!("cannot create {}", path.display()))?;
    Ok(path.to_owned())
}

/// Copies a folder of sources.
fn copy(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from).with_context(|| format!("cannot read {}", from.display()))? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default();
        if NO_SOURCES.iter().any(|folder| name == *folder) {
            continue;
        }
        let copy_path = to.join(name);
        if path.is_dir() {
            copy(&path, &copy_path)?;
        } else {
            fs::copy(&path, &copy_path).with_context(|| format!("cannot copy {}", path.display()))?;
        }
    }
    Ok(())
}

/// Puts generated types into the project, where editors find them. They are not sources.
fn give_to_editors(project: &Project, generated: &Path, name: &str) -> Result<()> {
    copy(generated, &fresh_folder(&project.folder.join(".oarlock").join(name))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_component_of_the_same_bytes_is_not_written() {
        let folder = tempfile::tempdir().unwrap();
        let (built, place) = (folder.path().join("built"), folder.path().join("out/a.wasm"));
        fs::write(&built, b"\0asm\x01\0\0\0").unwrap();
        assert!(install(&built, &place).unwrap_err().to_string().ends_with("is not a component"));

        fs::write(&built, b"\0asm\x0d\0\x01\0").unwrap();
        assert_eq!(install(&built, &place).unwrap(), Outcome::Written);
        assert_eq!(install(&built, &place).unwrap(), Outcome::Unchanged);
        fs::write(&built, b"\0asm\x0d\0\x01\0more").unwrap();
        assert_eq!(install(&built, &place).unwrap(), Outcome::Written);
    }
}

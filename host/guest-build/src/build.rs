//! Builds a project with the tools of its language.
//!
//! A component that did not change is not written, so that a running host does not load it again. In Rust, Go
//! and C the same sources give the same bytes. Components in Python and JavaScript are snapshots of an engine
//! that took random numbers from WASI when it started, so they differ; they are not built without a change.

mod c;
mod go;
mod js;
mod outputs;
mod python;
mod rust;
mod snapshot;
mod stamp;

pub use c::write_test_sdk as write_c_test_sdk;
pub use snapshot::Snapshot;

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

use crate::toolchain::cache;
use crate::{Language, Project, embedded, progress};

/// Folders of package managers and interpreters, which are no sources wherever they are.
const NO_SOURCES: [&str; 2] = ["__pycache__", "node_modules"];

/// Folders of builds, which are no sources beside the project file. Deeper they may be packages of these
/// names.
const NO_SOURCES_AT_ROOT: [&str; 2] = ["target", "venv"];

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
    let Project { name, language, build_folder, component, .. } = project;
    // Another file may be a source.
    ensure!(
        component.extension().is_some_and(|extension| extension == "wasm"),
        "a build writes {}, which does not end in .wasm: change `component` in the plugin's file",
        component.display()
    );
    let _lock = cache::lock(&build_folder.with_extension("lock"), name)?;
    match language {
        // Cargo detects changes.
        Language::Rust => rust::build(project),
        Language::C => stamp::unless_unchanged(project, &c::recipe()?, || c::build(project)),
        Language::Go => go::build(project),
        Language::JavaScript | Language::TypeScript => {
            stamp::unless_unchanged(project, &js::recipe(project)?, || js::build(project))
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

/// Writes into a new project what its tests and editors need before the first build.
pub(crate) fn prepare(language: Language, folder: &Path) -> Result<()> {
    match language {
        Language::Go => go::prepare(&embedded::Sources::write()?.sdk(), folder),
        _ => Ok(()),
    }
}

/// Creates an empty folder, and removes its old content.
fn fresh_folder(path: &Path) -> Result<PathBuf> {
    if path.exists() {
        fs::remove_dir_all(path).with_context(|| format!("cannot remove {}", path.display()))?;
    }
    fs::create_dir_all(path).with_context(|| format!("cannot create {}", path.display()))?;
    Ok(path.to_owned())
}

/// Returns whether a file or folder of a project is a source. Hidden ones are those of editors and tools.
fn is_source(name: &OsStr, is_at_root: bool) -> bool {
    let is_any = |names: &[&str]| names.iter().any(|other| name == *other);
    let is_hidden = name.as_encoded_bytes().starts_with(b".");
    let is_made = is_any(&NO_SOURCES) || is_at_root && is_any(&NO_SOURCES_AT_ROOT);
    !is_hidden && !is_made
}

/// Copies a folder of sources.
fn copy(from: &Path, to: &Path) -> Result<()> {
    copy_sources(from, to, true)
}

fn copy_sources(from: &Path, to: &Path, is_at_root: bool) -> Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from).with_context(|| format!("cannot read {}", from.display()))? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default();
        if !is_source(name, is_at_root) {
            continue;
        }
        let copy_path = to.join(name);
        if path.is_dir() {
            copy_sources(&path, &copy_path, false)?;
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
    fn sources_are_copied_without_what_tools_and_editors_add() {
        let folder = tempfile::tempdir().unwrap();
        let (from, to) = (folder.path().join("from"), folder.path().join("to"));
        for path in ["a.py", ".b.py", "target/c", "types/d.ts", "lib/target/e.py", "lib/__pycache__/f"] {
            fs::create_dir_all(from.join(path).parent().unwrap()).unwrap();
            fs::write(from.join(path), "").unwrap();
        }
        // The lock of an editor.
        #[cfg(unix)]
        std::os::unix::fs::symlink("user@machine.1", from.join(".#a.py")).unwrap();
        copy(&from, &to).unwrap();
        for (path, is_copied) in [
            ("a.py", true),
            (".b.py", false),
            ("target", false),
            ("types/d.ts", true),
            ("lib/target/e.py", true),
            ("lib/__pycache__", false),
        ] {
            assert_eq!(to.join(path).exists(), is_copied, "{path}");
        }
    }

    #[test]
    fn a_source_is_not_overwritten_by_the_component() {
        let folder = tempfile::tempdir().unwrap();
        let source = folder.path().join("plugin.c");
        fs::write(&source, "int x;").unwrap();
        let project = Project {
            name: "a".to_owned(),
            language: Language::C,
            component: source.clone(),
            build_folder: folder.path().join("build"),
            wit: folder.path().join("wit"),
            folder: folder.path().to_owned(),
            sdk: folder.path().join("guest-sdk"),
        };
        let error = build(&project).unwrap_err().to_string();
        assert!(error.contains("plugin.c, which does not end in .wasm"), "{error}");
        assert_eq!(fs::read_to_string(source).unwrap(), "int x;");
    }

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

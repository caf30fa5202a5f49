//! Python guests: a `requirements.txt` with componentize-py, and one module with the plugin.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

use super::{Guest, WORLD, copy, fresh_folder, install, stamp};
use crate::toolchain::command;
use crate::toolchain::python::Packages;
use crate::{checkout, progress};

/// Builds a guest: CPython with the module, initialized until its imports are done.
pub(super) fn build(guest: &Guest) -> Result<()> {
    stamp::unless_unchanged(guest, include_str!("python.rs"), || {
        let packages = Packages::install(&guest.folder.join("requirements.txt"))?;
        progress::step(&format!("Python: {}", guest.name), || {
            let component = compile(guest, &packages)?;
            install(&guest.name, &component)
        })
    })
}

fn compile(guest: &Guest, packages: &Packages) -> Result<PathBuf> {
    let folder = fresh_folder(&checkout::guest_build(&guest.name))?;
    let project = folder.join("project");
    copy(&guest.folder, &project)?;

    let component = folder.join("component.wasm");
    let mut componentize = packages.program("componentize-py");
    componentize.current_dir(&project).arg("--quiet").arg("--wit-path").arg(checkout::wit());
    // WASI is not stubbed, since exceptions and print need it.
    componentize.args(["--world", WORLD, "componentize", "--python-path", "."]);
    componentize.arg(module(&project)?).arg("--output").arg(&component);
    command::run(&mut componentize)?;
    Ok(component)
}

/// Returns the name of the project's only module.
fn module(project: &Path) -> Result<String> {
    let mut modules = vec![];
    for file in fs::read_dir(project)? {
        let path = file?.path();
        if path.extension().is_some_and(|extension| extension == "py") {
            modules.push(path.file_stem().unwrap_or_default().to_string_lossy().into_owned());
        }
    }
    ensure!(modules.len() < 2, "more than one Python module beside requirements.txt: {}", modules.join(", "));
    modules.pop().context("no Python module beside requirements.txt")
}

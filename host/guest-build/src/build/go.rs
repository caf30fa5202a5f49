//! Go: a module whose packages `exports/export_oarlock_plugin_*` contain the plugin's functions.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};

use super::{Outcome, copy, fresh_folder, install};
use crate::toolchain::command;
use crate::toolchain::go::Toolchain;
use crate::toolchain::versions::GUEST_GO;
use crate::{Project, bindings, progress};

/// Builds the module with bindings, a core module that calls WASI, a component.
pub(super) fn build(project: &Project) -> Result<Outcome> {
    let toolchain = Toolchain::find(GUEST_GO)?;
    progress::step(&format!("Go: {}", project.name), || {
        install(&compile(project, &toolchain)?, &project.component)
    })
}

fn compile(project: &Project, toolchain: &Toolchain) -> Result<PathBuf> {
    let world = project.world()?;
    let folder = fresh_folder(&project.build_folder)?;
    let module = folder.join("module");
    copy(&project.folder, &module)?;
    let go_mod = fs::read_to_string(project.folder.join("go.mod"))?;
    let name =
        go_mod.lines().find_map(|line| line.strip_prefix("module ")).context("go.mod has no module line")?;
    bindings::go(&project.wit, &world, name.trim(), &module)?;

    let core = folder.join("core.wasm");
    let mut go = toolchain.go();
    go.current_dir(&module).envs([("GOOS", "wasip1"), ("GOARCH", "wasm")]);
    go.args(["build", "-trimpath", "-buildmode=c-shared", "-ldflags=-checklinkname=0 -s -w", "-o"])
        .arg(&core);
    command::compile("go build", &mut go)?;

    let component = folder.join("component.wasm");
    bindings::encode(&project.wit, &world, &core, &component)?;
    Ok(component)
}

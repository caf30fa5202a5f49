//! Go guests: a module whose packages `exports/export_oarlock_plugin_*` contain the plugin's functions.

use std::ffi::OsStr;
use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};

use super::{Guest, WORLD, copy, fresh_folder, install, stamp};
use crate::toolchain::go::Toolchain;
use crate::toolchain::versions::GUEST_GO;
use crate::toolchain::{command, wit_tool};
use crate::{checkout, progress};

/// Builds a guest: the module with bindings, a core module that calls WASI, a component.
pub(super) fn build(guest: &Guest) -> Result<()> {
    stamp::unless_unchanged(guest, include_str!("go.rs"), || {
        let toolchain = Toolchain::find(GUEST_GO)?;
        wit_tool::prepare()?;
        progress::step(&format!("Go: {}", guest.name), || {
            let component = compile(guest, &toolchain)?;
            install(&guest.name, &component)
        })
    })
}

fn compile(guest: &Guest, toolchain: &Toolchain) -> Result<PathBuf> {
    let folder = fresh_folder(&checkout::guest_build(&guest.name))?;
    let module = folder.join("module");
    copy(&guest.folder, &module)?;
    let go_mod = fs::read_to_string(guest.folder.join("go.mod"))?;
    let name =
        go_mod.lines().find_map(|line| line.strip_prefix("module ")).context("go.mod has no module line")?;
    wit_tool::run(WORLD, ["go".as_ref(), "--module".as_ref(), OsStr::new(name.trim()), module.as_os_str()])?;

    let core = folder.join("core.wasm");
    let mut go = toolchain.go();
    go.current_dir(&module).envs([("GOOS", "wasip1"), ("GOARCH", "wasm")]);
    go.args(["build", "-trimpath", "-buildmode=c-shared", "-ldflags=-checklinkname=0 -s -w", "-o"])
        .arg(&core);
    command::run(&mut go)?;

    let component = folder.join("component.wasm");
    wit_tool::run(WORLD, ["component".as_ref(), core.as_os_str(), component.as_os_str()])?;
    Ok(component)
}

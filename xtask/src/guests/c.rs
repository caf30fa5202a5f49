//! C guests: a folder of `*.c` files.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::Result;

use super::{Guest, WORLD, fresh_folder, install, stamp};
use crate::toolchain::c::Toolchain;
use crate::toolchain::rust::Linker;
use crate::toolchain::{command, wit_tool};
use crate::{checkout, progress};

/// Builds a guest: bindings, object files, component.
pub(super) fn build(guest: &Guest) -> Result<()> {
    stamp::unless_unchanged(guest, include_str!("c.rs"), || {
        let toolchain = Toolchain::find()?;
        let linker = Linker::find()?;
        wit_tool::prepare()?;
        progress::step(&format!("C: {}", guest.name), || {
            let component = link(guest, &toolchain, &linker)?;
            install(&guest.name, &component)
        })
    })
}

fn link(guest: &Guest, toolchain: &Toolchain, linker: &Linker) -> Result<PathBuf> {
    let folder = fresh_folder(&checkout::guest_build(&guest.name))?;
    wit_tool::run(WORLD, ["c".as_ref(), folder.as_os_str()])?;

    let mut sources = vec![];
    for parent in [&guest.folder, &folder] {
        for file in fs::read_dir(parent)? {
            let path = file?.path();
            if path.extension().is_some_and(|extension| extension == "c") {
                sources.push(path);
            }
        }
    }
    sources.sort();
    let mut objects = vec![];
    for source in &sources {
        let object = folder.join(source.with_extension("o").file_name().unwrap_or_default());
        let mut clang = toolchain.clang();
        clang.args(["-std=c17", "-Os", "-flto=full", "-ffunction-sections", "-fno-exceptions"]);
        if source.starts_with(&guest.folder) {
            clang.args(["-Wall", "-Wextra", "-Werror"]);
        }
        // Assertions contain the file name, but not the checkout's folder.
        if let Some(parent) = source.parent() {
            clang.arg(format!("-ffile-prefix-map={}/=", parent.display()));
        }
        clang.arg("-I").arg(&folder).arg("-c").arg(source).arg("-o").arg(&object);
        command::run(&mut clang)?;
        objects.push(object);
    }
    // This object file names the world of the component.
    objects.push(folder.join(format!("{}_component_type.o", WORLD.replace('-', "_"))));

    let component = folder.join("component.wasm");
    let mut ld = Command::new(&linker.wasm_component_ld);
    ld.arg("--wasm-ld-path").arg(&linker.wasm_ld);
    ld.args(["--wasi-adapter", "reactor", "--no-entry", "--gc-sections", "--strip-debug", "-O2"]);
    ld.args(&objects)
        .arg("-L")
        .arg(&toolchain.lib)
        .arg("-lc")
        .arg(&toolchain.builtins)
        .arg("-o")
        .arg(&component);
    command::run(&mut ld)?;
    Ok(component)
}

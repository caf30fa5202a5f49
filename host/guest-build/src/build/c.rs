//! C: a folder of `*.c` files.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::Result;

use super::{Outcome, fresh_folder, install};
use crate::toolchain::c::Toolchain;
use crate::toolchain::command;
use crate::toolchain::rust::Linker;
use crate::{Project, bindings, progress};

/// Builds bindings, object files, component.
pub(super) fn build(project: &Project) -> Result<Outcome> {
    let toolchain = Toolchain::find()?;
    let linker = Linker::find()?;
    progress::step(&format!("C: {}", project.name), || {
        install(&link(project, &toolchain, &linker)?, &project.component)
    })
}

fn link(project: &Project, toolchain: &Toolchain, linker: &Linker) -> Result<PathBuf> {
    let world = project.world()?;
    let folder = fresh_folder(&project.build_folder)?;
    bindings::c(&project.wit, &world, &folder)?;

    let mut sources = vec![];
    for parent in [&project.folder, &folder] {
        for file in fs::read_dir(parent)? {
            let path = file?.path();
            // An editor's lock of a source is hidden.
            let is_hidden = path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
            if !is_hidden && path.extension().is_some_and(|extension| extension == "c") {
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
        if source.starts_with(&project.folder) {
            clang.args(["-Wall", "-Wextra", "-Werror"]);
        }
        // Assertions contain the file name, but not the folder.
        if let Some(parent) = source.parent() {
            clang.arg(format!("-ffile-prefix-map={}/=", parent.display()));
        }
        clang.arg("-I").arg(&folder).arg("-c").arg(source).arg("-o").arg(&object);
        command::compile("clang", &mut clang)?;
        objects.push(object);
    }
    // This object file names the world of the component.
    objects.push(folder.join(format!("{}_component_type.o", world.replace('-', "_"))));

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
    command::compile("wasm-component-ld", &mut ld)?;
    Ok(component)
}

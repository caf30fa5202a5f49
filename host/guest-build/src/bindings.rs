//! Bindings for guests in C and Go, and components from core modules: what `wit-bindgen` and `wasm-tools` do,
//! from the same crates, so that these need not be installed.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use wasi_preview1_component_adapter_provider::{
    WASI_SNAPSHOT_PREVIEW1_ADAPTER_NAME, WASI_SNAPSHOT_PREVIEW1_REACTOR_ADAPTER,
};
use wit_bindgen_core::wit_parser::{Resolve, WorldId};
use wit_bindgen_core::{Files, WorldGenerator};
use wit_component::{ComponentEncoder, StringEncoding};

use crate::embedded;

/// Writes C bindings for a world of the WIT package in the folder `wit`.
///
/// # Errors
///
/// When the package has no such world, or files cannot be written.
pub fn c(wit: &Path, world: &str, folder: &Path) -> Result<()> {
    let (resolve, world) = world_of(wit, world)?;
    bindings(wit_bindgen_c::Opts::default().build(), resolve, world, folder)
}

/// Writes Go bindings as packages of a module, and the package `pkg` that they need.
///
/// # Errors
///
/// When the package has no such world, or files cannot be written.
pub fn go(wit: &Path, world: &str, module: &str, folder: &Path) -> Result<()> {
    let (resolve, world) = world_of(wit, world)?;
    let options =
        wit_bindgen_go::Opts { pkg_name: Some(module.to_owned()), quiet: true, ..Default::default() };
    bindings(options.build(), resolve, world, folder)?;
    embedded::write_go_runtime(&folder.join("pkg"))
}

/// Turns a core module that calls WASI 0.1 into a component.
///
/// # Errors
///
/// When the module does not fit the world, or files cannot be read or written.
pub fn encode(wit: &Path, world: &str, core: &Path, component: &Path) -> Result<()> {
    let (resolve, world) = world_of(wit, world)?;
    let mut module = fs::read(core).with_context(|| format!("cannot read {}", core.display()))?;
    wit_component::embed_component_metadata(&mut module, &resolve, world, StringEncoding::UTF8, false)?;
    let bytes = ComponentEncoder::default()
        .module(&module)?
        .adapter(WASI_SNAPSHOT_PREVIEW1_ADAPTER_NAME, WASI_SNAPSHOT_PREVIEW1_REACTOR_ADAPTER)?
        .validate(true)
        .encode()?;
    fs::write(component, bytes).with_context(|| format!("cannot write {}", component.display()))
}

fn world_of(wit: &Path, world: &str) -> Result<(Resolve, WorldId)> {
    let mut resolve = Resolve::default();
    let (package, _) = resolve.push_path(wit).with_context(|| format!("cannot read {}", wit.display()))?;
    let world = resolve.select_world(&[package], Some(world))?;
    Ok((resolve, world))
}

fn bindings(
    mut generator: Box<dyn WorldGenerator>,
    mut resolve: Resolve,
    world: WorldId,
    folder: &Path,
) -> Result<()> {
    let mut files = Files::default();
    generator.generate(&mut resolve, world, &mut files)?;
    for (name, contents) in files.iter() {
        embedded::write(&folder.join(name), contents)?;
    }
    Ok(())
}

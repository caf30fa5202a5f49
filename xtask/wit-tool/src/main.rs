//! What `wit-bindgen` and `wasm-tools` would do for guests in C and Go, from the same crates, without installing them.

#![forbid(unsafe_code)]

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::{Parser, Subcommand};
use wasi_preview1_component_adapter_provider::{
    WASI_SNAPSHOT_PREVIEW1_ADAPTER_NAME, WASI_SNAPSHOT_PREVIEW1_REACTOR_ADAPTER,
};
use wit_bindgen_core::wit_parser::{Resolve, WorldId};
use wit_bindgen_core::{Files, WorldGenerator};
use wit_component::{ComponentEncoder, StringEncoding};

/// Bindings for guests in C and Go, and components of what their compilers make.
#[derive(Parser)]
struct Args {
    /// The folder with the WIT package.
    #[arg(long)]
    wit: PathBuf,
    /// The world that the guest targets.
    #[arg(long)]
    world: String,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Writes C bindings.
    C { folder: PathBuf },
    /// Writes Go bindings as packages of a module.
    Go {
        /// The module's name.
        #[arg(long)]
        module: String,
        folder: PathBuf,
    },
    /// Makes a component of a core module that calls WASI 0.1.
    Component { core: PathBuf, component: PathBuf },
}

fn main() -> Result<()> {
    let Args { wit, world, command } = Args::parse();
    let mut resolve = Resolve::default();
    let (package, _) = resolve.push_path(&wit).with_context(|| format!("cannot read {}", wit.display()))?;
    let world = resolve.select_world(&[package], Some(&world))?;
    match command {
        Command::C { folder } => bindings(wit_bindgen_c::Opts::default().build(), resolve, world, &folder),
        Command::Go { module, folder } => {
            let options = wit_bindgen_go::Opts { pkg_name: Some(module), ..Default::default() };
            bindings(options.build(), resolve, world, &folder)
        }
        Command::Component { core, component } => encode(&resolve, world, &core, &component),
    }
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
        let path = folder.join(name);
        fs::create_dir_all(path.parent().unwrap_or(folder))?;
        fs::write(&path, contents).with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}

fn encode(resolve: &Resolve, world: WorldId, core: &Path, component: &Path) -> Result<()> {
    let mut module = fs::read(core).with_context(|| format!("cannot read {}", core.display()))?;
    wit_component::embed_component_metadata(&mut module, resolve, world, StringEncoding::UTF8, false)?;
    let bytes = ComponentEncoder::default()
        .module(&module)?
        .adapter(WASI_SNAPSHOT_PREVIEW1_ADAPTER_NAME, WASI_SNAPSHOT_PREVIEW1_REACTOR_ADAPTER)?
        .validate(true)
        .encode()?;
    fs::write(component, bytes).with_context(|| format!("cannot write {}", component.display()))
}

//! What `wit-bindgen` and `wasm-tools` would do for guests in C and Go, from the same crates, without installing them.

#![forbid(unsafe_code)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use clap::{Parser, Subcommand};
use serde_json::Value;
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
    command: Subcommands,
}

#[derive(Subcommand)]
enum Subcommands {
    /// Writes C bindings.
    C { folder: PathBuf },
    /// Writes Go bindings as packages of a module, and the package `pkg` that they stand on.
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
        Subcommands::C { folder } => {
            bindings(wit_bindgen_c::Opts::default().build(), resolve, world, &folder)
        }
        Subcommands::Go { module, folder } => {
            let options = wit_bindgen_go::Opts { pkg_name: Some(module), ..Default::default() };
            bindings(options.build(), resolve, world, &folder)?;
            go_runtime(&folder.join("pkg"))
        }
        Subcommands::Component { core, component } => encode(&resolve, world, &core, &component),
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

/// Copies the module `go.bytecodealliance.org/pkg` as the generator's crate carries it, so that both always fit. Of its
/// packages, those that a world without asynchronous functions needs.
fn go_runtime(folder: &Path) -> Result<()> {
    let metadata = Command::new(env!("CARGO"))
        .args([
            "metadata",
            "--format-version=1",
            "--manifest-path",
            concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml"),
        ])
        .output()
        .context("cannot run cargo metadata")?;
    let metadata: Value =
        serde_json::from_slice(&metadata.stdout).context("cargo metadata answers no JSON")?;
    let mut packages = metadata["packages"].as_array().into_iter().flatten();
    let manifest = packages
        .find(|package| package["name"] == "wit-bindgen-go")
        .and_then(|package| package["manifest_path"].as_str())
        .context("cargo metadata does not name wit-bindgen-go")?;
    let source = Path::new(manifest).with_file_name("src/pkg");
    for package in ["wit/runtime", "wit/types"] {
        fs::create_dir_all(folder.join(package))?;
        for file in fs::read_dir(source.join(package))? {
            let path = file?.path();
            let name = path.file_name().unwrap_or_default();
            if name != "future.go" && name != "stream.go" {
                fs::copy(&path, folder.join(package).join(name))?;
            }
        }
    }
    fs::write(folder.join("go.mod"), "module go.bytecodealliance.org/pkg\n\ngo 1.25\n")?;
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

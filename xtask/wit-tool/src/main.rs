//! Generates bindings and components for guests in C and Go, like `wit-bindgen` and `wasm-tools` and from the
//! same crates, so that these need not be installed.

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

/// Generates bindings for guests in C and Go, and turns their core modules into components.
#[derive(Parser)]
struct Args {
    /// The folder of the WIT package.
    #[arg(long)]
    wit: PathBuf,
    /// The world of the guest.
    #[arg(long)]
    world: String,
    #[command(subcommand)]
    command: Subcommands,
}

#[derive(Subcommand)]
enum Subcommands {
    /// Writes C bindings.
    C { folder: PathBuf },
    /// Writes Go bindings as packages of a module, and the package `pkg` that they need.
    Go {
        /// The module's name.
        #[arg(long)]
        module: String,
        folder: PathBuf,
    },
    /// Turns a core module that calls WASI 0.1 into a component.
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

/// Copies the module `go.bytecodealliance.org/pkg` from the generator's crate, so that both have the same
/// version. Only the packages for synchronous functions are copied.
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
        serde_json::from_slice(&metadata.stdout).context("cargo metadata did not print JSON")?;
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

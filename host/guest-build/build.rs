//! Copies the Go packages that the bindings import from the crate `wit-bindgen-go`, so that both have one
//! version.
#![expect(
    clippy::disallowed_methods,
    reason = "cargo passes its values to a build script in the environment"
)]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use serde_json::Value;

/// Those for functions without `async`.
const PACKAGES: [&str; 2] = ["wit/runtime", "wit/types"];

/// Files in them for functions with `async`, which import more packages.
const ASYNC: [&str; 2] = ["future.go", "stream.go"];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = PathBuf::from(env::var("OUT_DIR")?).join("go-runtime");
    let manifest = Path::new(&env::var("CARGO_MANIFEST_DIR")?).join("Cargo.toml");
    let metadata = Command::new(env::var("CARGO")?)
        .args(["metadata", "--format-version=1", "--locked", "--filter-platform", &env::var("TARGET")?])
        .arg("--manifest-path")
        .arg(&manifest)
        .output()?;
    if !metadata.status.success() {
        return Err(format!("cargo metadata: {}", String::from_utf8_lossy(&metadata.stderr)).into());
    }
    let metadata: Value = serde_json::from_slice(&metadata.stdout)?;
    let mut packages = metadata["packages"].as_array().into_iter().flatten();
    let generator = packages
        .find(|package| package["name"] == "wit-bindgen-go")
        .and_then(|package| package["manifest_path"].as_str())
        .ok_or("cargo metadata does not name wit-bindgen-go")?;
    let source = Path::new(generator).with_file_name("src").join("pkg");
    for package in PACKAGES {
        fs::create_dir_all(folder.join(package))?;
        for file in fs::read_dir(source.join(package))? {
            let path = file?.path();
            let name = path.file_name().unwrap_or_default();
            if !ASYNC.iter().any(|skipped| name == *skipped) {
                fs::copy(&path, folder.join(package).join(name))?;
            }
        }
    }
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed={}", source.display());
    // Another version of the crate is another line in this file.
    println!("cargo::rerun-if-changed=../../Cargo.lock");
    Ok(())
}

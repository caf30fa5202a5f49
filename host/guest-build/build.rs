//! Copies what the binary carries: the contract, the SDKs and the templates, without the files that Git
//! ignores, so that a binary is the same wherever it is built; and the Go packages that the bindings import,
//! from the crate `wit-bindgen-go`, so that both have one version.
#![expect(
    clippy::disallowed_methods,
    reason = "cargo passes its values to a build script in the environment"
)]

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use ignore::WalkBuilder;
use serde_json::Value;

/// The contract, the SDKs and the templates, in the repository.
const SOURCES: [&str; 20] = [
    "guest-sdk/c/include",
    "guest-sdk/c/src",
    "guest-sdk/c/testing",
    "guest-sdk/go",
    "guest-sdk/go-controller-runtime",
    "guest-sdk/python-kopf/src",
    "guest-sdk/python/src",
    "guest-sdk/rust/Cargo.toml",
    "guest-sdk/rust/allocator",
    "guest-sdk/rust/bindings",
    "guest-sdk/rust/derive",
    "guest-sdk/rust/full-world",
    "guest-sdk/rust/handler-world",
    "guest-sdk/rust/reconciler-world",
    "guest-sdk/rust/src",
    "guest-sdk/ts/package.json",
    "guest-sdk/ts/src",
    "guest-sdk/ts/tsconfig.json",
    TEMPLATES,
    "wit",
];

const TEMPLATES: &str = "templates";

/// The Go packages for functions without `async`.
const PACKAGES: [&str; 2] = ["wit/runtime", "wit/types"];

/// Files in them for functions with `async`, which import more packages.
const ASYNC: [&str; 2] = ["future.go", "stream.go"];

fn main() -> Result<(), Box<dyn Error>> {
    let out = PathBuf::from(env::var("OUT_DIR")?);
    let package = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?);
    println!("cargo::rerun-if-changed=build.rs");
    copy_sources(&package.join("../..").canonicalize()?, &out)?;
    copy_go_runtime(&package.join("Cargo.toml"), &out.join("go-runtime"))
}

/// Copies the files of `SOURCES`: templates into a folder of their own, the others into `sources`.
fn copy_sources(root: &Path, out: &Path) -> Result<(), Box<dyn Error>> {
    let sources = out.join("sources");
    for stale in [sources.clone(), out.join(TEMPLATES)] {
        if stale.exists() {
            fs::remove_dir_all(stale)?;
        }
    }
    let mut walk = WalkBuilder::new(root);
    walk.standard_filters(false).git_ignore(true).require_git(false);
    let from = root.to_owned();
    walk.filter_entry(move |entry| {
        let Ok(path) = entry.path().strip_prefix(&from) else { return false };
        SOURCES.iter().any(|source| path.starts_with(source) || Path::new(source).starts_with(path))
    });
    for entry in walk.build() {
        let path = entry?.into_path();
        if path.is_file() {
            // Not the folders: what is built changes them.
            println!("cargo::rerun-if-changed={}", path.display());
            let relative = path.strip_prefix(root)?;
            let to = if relative.starts_with(TEMPLATES) { out } else { &sources }.join(relative);
            fs::create_dir_all(to.parent().unwrap_or(out))?;
            fs::copy(&path, to)?;
        }
    }
    println!("cargo::rerun-if-changed={}", root.join(".gitignore").display());
    Ok(())
}

fn copy_go_runtime(manifest: &Path, folder: &Path) -> Result<(), Box<dyn Error>> {
    let metadata = Command::new(env::var("CARGO")?)
        .args(["metadata", "--format-version=1", "--locked", "--filter-platform", &env::var("TARGET")?])
        .arg("--manifest-path")
        .arg(manifest)
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
    println!("cargo::rerun-if-changed={}", source.display());
    // Another version of the crate is another line in this file.
    println!("cargo::rerun-if-changed=../../Cargo.lock");
    Ok(())
}

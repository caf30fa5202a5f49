//! The files that the binary carries: the contract, the SDKs and the templates.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use include_dir::{Dir, DirEntry, include_dir};
use sha2::{Digest, Sha256};

use crate::bindings;
use crate::toolchain::cache;

/// The contract and the SDKs, with their places in the repository. `build.rs` copies them, without the files
/// that Git ignores.
static SOURCES: Dir<'_> = include_dir!("$OUT_DIR/sources");

/// The Go packages that the bindings import, which `build.rs` copies from the crate `wit-bindgen-go`.
static GO_RUNTIME: Dir<'_> = include_dir!("$OUT_DIR/go-runtime");

/// The templates of `oarlock plugin new`.
pub(crate) static TEMPLATES: Dir<'_> = include_dir!("$OUT_DIR/templates");

/// The embedded contract and SDKs, as folders.
pub(crate) struct Sources {
    root: PathBuf,
}

// === impl Sources ===

impl Sources {
    /// Writes them into the cache, unless it has these files.
    pub(crate) fn write() -> Result<Self> {
        let mut digest = Sha256::new();
        let mut all = files(&SOURCES);
        all.sort();
        for (path, bytes) in &all {
            digest.update(path.to_string_lossy().as_bytes());
            digest.update((bytes.len() as u64).to_le_bytes());
            digest.update(bytes);
        }
        // The bindings change with their generator.
        for (_, bytes) in files(&GO_RUNTIME) {
            digest.update(bytes);
        }
        let digest: String = digest.finalize().iter().take(8).map(|byte| format!("{byte:02x}")).collect();
        let root = cache::entry(&format!("sdk-{digest}"), |folder| {
            all.iter().try_for_each(|(path, bytes)| write(&folder.join(path), bytes))?;
            bindings::go_sdk(&folder.join("wit"), &folder.join("guest-sdk/go"))
        })?;
        Ok(Self { root })
    }

    /// Returns the folder of the WIT package.
    pub(crate) fn wit(&self) -> PathBuf {
        self.root.join("wit")
    }

    /// Returns the folder of the SDKs.
    pub(crate) fn sdk(&self) -> PathBuf {
        self.root.join("guest-sdk")
    }
}

/// Writes the Go packages that the bindings import, as the module `go.bytecodealliance.org/pkg`.
pub(crate) fn write_go_runtime(folder: &Path) -> Result<()> {
    for (path, bytes) in files(&GO_RUNTIME) {
        write(&folder.join(path), bytes)?;
    }
    write(&folder.join("go.mod"), b"module go.bytecodealliance.org/pkg\n\ngo 1.25\n")
}

/// Returns whether two folders have the same files.
pub(crate) fn is_same(one: &Path, other: &Path) -> bool {
    let (Ok(files), Ok(others)) = (below(one), below(other)) else { return false };
    let is_same = |path: &PathBuf| matches!((fs::read(one.join(path)), fs::read(other.join(path))), (Ok(a), Ok(b)) if a == b);
    files == others && files.iter().all(is_same)
}

/// Returns all files below an embedded folder: paths and bytes.
pub(crate) fn files(folder: &'static Dir<'static>) -> Vec<(&'static Path, &'static [u8])> {
    let mut found = vec![];
    let mut folders = vec![folder];
    while let Some(folder) = folders.pop() {
        for entry in folder.entries() {
            match entry {
                DirEntry::Dir(folder) => folders.push(folder),
                DirEntry::File(file) => found.push((file.path(), file.contents())),
            }
        }
    }
    found
}

/// Returns the paths of all files below a folder of this machine, relative to it, in order.
pub(crate) fn below(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut found = vec![];
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(&next).with_context(|| format!("cannot read {}", next.display()))? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
            } else {
                found.push(path.strip_prefix(folder)?.to_owned());
            }
        }
    }
    found.sort();
    Ok(found)
}

/// Writes a file, and the folders above it.
pub(crate) fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent).with_context(|| format!("cannot create {}", parent.display()))?;
    }
    fs::write(path, bytes).with_context(|| format!("cannot write {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_contract_and_every_crate_of_the_sdk_are_embedded() {
        let names: Vec<_> = files(&SOURCES).into_iter().map(|(path, _)| path.display().to_string()).collect();
        let manifest =
            SOURCES.get_file("guest-sdk/rust/Cargo.toml").and_then(|it| it.contents_utf8()).unwrap();
        let manifest: toml::Table = toml::from_str(manifest).unwrap();
        let members = manifest["workspace"]["members"].as_array().unwrap();
        let members = members.iter().map(|member| format!("{}/", member.as_str().unwrap()));
        let manifests =
            members.chain([String::new()]).map(|member| format!("guest-sdk/rust/{member}Cargo.toml"));
        let others = [
            "wit/worlds.wit",
            "guest-sdk/rust/src/lib.rs",
            "guest-sdk/c/include/oarlock_testing.h",
            "guest-sdk/c/testing/host.c",
            "guest-sdk/ts/package.json",
            "guest-sdk/ts/src/index.ts",
            "guest-sdk/python/src/oarlock/__init__.py",
            "guest-sdk/python/src/oarlock/py.typed",
            "guest-sdk/python-kopf/src/kopf/__init__.py",
            "guest-sdk/go/go.mod",
            "guest-sdk/go/oarlock.go",
            "guest-sdk/go-controller-runtime/go.mod",
        ];
        for file in manifests.chain(others.map(str::to_owned)) {
            assert!(names.contains(&file), "{file} is missing in {names:?}");
        }
        // What is built beside the sources, if it is there, differs between machines.
        let built = ["target/", "__pycache__/", "node_modules/", "internal/wit/imports/"];
        let is_built = |name: &String| built.iter().any(|folder| name.contains(folder));
        assert!(!names.iter().any(is_built), "{names:?}");
    }

    #[test]
    fn the_go_packages_for_functions_without_async_are_embedded() {
        let names: Vec<_> =
            files(&GO_RUNTIME).into_iter().map(|(path, _)| path.display().to_string()).collect();
        for file in ["wit/runtime/runtime.go", "wit/types/result.go", "wit/types/option.go"] {
            assert!(names.contains(&file.to_owned()), "{file} is missing in {names:?}");
        }
        assert!(!names.iter().any(|name| name.ends_with("future.go")), "{names:?}");
    }
}

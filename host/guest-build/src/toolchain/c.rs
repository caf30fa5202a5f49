//! The C compiler for WebAssembly and its library: the WASI SDK if it is installed, else Debian's clang and
//! wasi-libc.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use super::versions::DEBIAN_CLANG;
use super::{cache, debian};
use crate::environment::WASI_SDK_PATH;
use crate::progress;

/// The compiler of C guests.
pub struct Toolchain {
    clang: PathBuf,
    /// The library's folder with headers.
    include: PathBuf,
    /// The library's folder with object files.
    pub lib: PathBuf,
    /// The compiler's runtime library, which clang expects for operations that WebAssembly does not have.
    pub builtins: PathBuf,
    /// The folders of the compiler's shared libraries, unless they are the machine's.
    libraries: Option<String>,
}

/// Returns the WASI SDK that the environment names.
pub(crate) fn sdk() -> Option<PathBuf> {
    env::var_os(WASI_SDK_PATH).filter(|path| !path.is_empty()).map(PathBuf::from)
}

// === impl Toolchain ===

impl Toolchain {
    /// Finds or downloads the toolchain.
    pub fn find() -> Result<Self> {
        if let Some(sdk) = sdk() {
            return Self::of_sdk(&sdk)
                .with_context(|| format!("WASI_SDK_PATH names {}, which is not a WASI SDK", sdk.display()));
        }
        let clang = cache::entry(&format!("clang-{DEBIAN_CLANG}-wasi"), fetch).with_context(|| {
            format!(
                "no C compiler for WebAssembly: Debian's clang {DEBIAN_CLANG} cannot be fetched; \
                 install the WASI SDK (release 25 or newer) and name it in WASI_SDK_PATH"
            )
        })?;
        Self::of_debian(&clang)
    }

    /// Returns a clang command for guests.
    pub fn clang(&self) -> Command {
        let mut clang = Command::new(&self.clang);
        clang.args(["--target=wasm32-wasi", "-isystem"]).arg(&self.include);
        if let Some(libraries) = &self.libraries {
            clang.env("LD_LIBRARY_PATH", libraries);
        }
        clang
    }

    fn of_sdk(sdk: &Path) -> Result<Self> {
        let sysroot = sdk.join("share/wasi-sysroot");
        let lib = sysroot.join("lib/wasm32-wasi");
        let resources = only_folder(&sdk.join("lib/clang"))?.join("lib");
        Ok(Self {
            clang: sdk.join("bin/clang"),
            include: sysroot.join("include/wasm32-wasi"),
            lib,
            builtins: find_file(
                &resources,
                &["wasi", "wasm32-unknown-wasip1", "wasip1", "wasm32-unknown-wasi"],
            )?,
            libraries: None,
        })
    }

    fn of_debian(folder: &Path) -> Result<Self> {
        let llvm = folder.join(format!("usr/lib/llvm-{DEBIAN_CLANG}"));
        let resources = only_folder(&llvm.join("lib/clang"))?.join("lib");
        let libraries = debian::library_folders(folder)?;
        Ok(Self {
            clang: llvm.join("bin/clang"),
            include: folder.join("usr/include/wasm32-wasi"),
            lib: folder.join("usr/lib/wasm32-wasi"),
            builtins: find_file(&resources, &["wasi", "wasm32-unknown-wasi"])?,
            libraries: Some(format!("{libraries}:{}", llvm.join("lib").display())),
        })
    }
}

/// Returns the entry of the cache with Debian's toolchain, if it is there.
pub(crate) fn cached() -> Option<PathBuf> {
    cache::existing_entry(&format!("clang-{DEBIAN_CLANG}-wasi")).ok().flatten()
}

fn fetch(folder: &Path) -> Result<()> {
    progress::step(&format!("downloading Debian's clang {DEBIAN_CLANG} and wasi-libc"), || {
        let packages = [
            format!("clang-{DEBIAN_CLANG}"),
            format!("libclang-common-{DEBIAN_CLANG}-dev"),
            format!("libclang-rt-{DEBIAN_CLANG}-dev-wasm32"),
            "wasi-libc".to_owned(),
        ];
        debian::unpack_with_dependencies(&packages, folder)
    })
}

fn only_folder(parent: &Path) -> Result<PathBuf> {
    let mut folders = fs::read_dir(parent).with_context(|| format!("cannot read {}", parent.display()))?;
    Ok(folders.next().with_context(|| format!("{} is empty", parent.display()))??.path())
}

/// Returns the compiler's runtime library, whose folder and name depend on clang's release.
fn find_file(resources: &Path, folders: &[&str]) -> Result<PathBuf> {
    let names = ["libclang_rt.builtins.a", "libclang_rt.builtins-wasm32.a"];
    let mut places = folders.iter().flat_map(|folder| names.map(|name| resources.join(folder).join(name)));
    places
        .find(|path| path.is_file())
        .with_context(|| format!("no libclang_rt.builtins in {}", resources.display()))
}

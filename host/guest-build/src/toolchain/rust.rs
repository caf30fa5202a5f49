//! The target `wasm32-unknown-unknown`, and the linker that creates components.
//!
//! Every rustup toolchain contains the linker (`wasm-component-ld`), few contain the target's standard
//! library. The library is, in this order: the installed one; the one from the cache; installed with `rustup
//! target add`; built with Debian's compiler from Debian's sources.

use std::env::consts::EXE_SUFFIX;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime};

use anyhow::{Context, Result, ensure};

use super::{cache, command, debian};
use crate::progress;

/// The target of Rust guests. It has no WASI: guests have only the imports of their world.
pub const TARGET: &str = "wasm32-unknown-unknown";

/// The time limit of `rustup target add`, which downloads 25 MB.
const RUSTUP_PATIENCE: Duration = Duration::from_secs(300);

/// The compiler and linker of Rust guests.
pub struct Toolchain {
    /// The folder of the compiler, unless it is rustup's.
    built: Option<PathBuf>,
    pub linker: Linker,
}

/// The linker of core modules, and the linker that turns them into components.
pub struct Linker {
    pub wasm_component_ld: PathBuf,
    pub wasm_ld: PathBuf,
}

// === impl Toolchain ===

impl Toolchain {
    /// Finds or builds the toolchain for the sources in a folder, which may name a version of Rust
    /// (`rust-toolchain.toml`).
    pub fn find(folder: &Path) -> Result<Self> {
        let sysroot = sysroot(folder)?;
        let linker = Linker::find(folder)?;
        if has_target(&sysroot) {
            return Ok(Self { built: None, linker });
        }
        let name = format!("rust-debian-{TARGET}");
        if let Some(built) = cache::existing_entry(&name)? {
            return Ok(Self { built: Some(built), linker });
        }
        let added = progress::step(&format!("rustup target add {TARGET}"), || {
            let mut rustup = Command::new("rustup");
            rustup.current_dir(folder).args(["target", "add", TARGET]);
            command::run_within(&mut rustup, RUSTUP_PATIENCE)
        });
        let added = match added {
            Ok(()) if has_target(&sysroot) => return Ok(Self { built: None, linker }),
            Ok(()) => "rustc does not find it".to_owned(),
            Err(error) => format!("{error:#}"),
        };
        progress::say(format!(
            "rustup cannot add {TARGET}; the standard library is built with Debian's Rust instead"
        ));
        let built = cache::entry(&name, build).with_context(|| {
            format!(
                "no standard library for {TARGET}: `rustup target add {TARGET}` failed ({added}), and so did the build \
                 with Debian's Rust"
            )
        })?;
        Ok(Self { built: Some(built), linker })
    }

    /// Returns a name for cargo's target directory. Each build of the standard library has its own, since
    /// cargo does not detect its changes.
    ///
    /// # Errors
    ///
    /// When the cache is damaged.
    pub fn id(&self) -> Result<String> {
        Ok(match &self.built {
            Some(built) => {
                let id = built.join("id");
                let id = fs::read_to_string(&id).with_context(|| format!("cannot read {}", id.display()))?;
                format!("rust-{id}")
            }
            None => "rust".to_owned(),
        })
    }

    /// Returns a cargo command for guests.
    pub fn cargo(&self) -> Command {
        let mut cargo = Command::new("cargo");
        if let Some(built) = &self.built {
            cargo.env("RUSTC", built.join("rustc"));
        }
        let Linker { wasm_component_ld, wasm_ld } = &self.linker;
        let flags = [
            format!("-Clinker={}", wasm_component_ld.display()),
            "-Clink-arg=--wasm-ld-path".to_owned(),
            format!("-Clink-arg={}", wasm_ld.display()),
        ];
        cargo.env_remove("RUSTFLAGS").env("CARGO_ENCODED_RUSTFLAGS", flags.join("\x1f"));
        cargo
    }
}

// === impl Linker ===

impl Linker {
    /// Finds the linkers of the toolchain that rustup uses in a folder.
    pub fn find(folder: &Path) -> Result<Self> {
        let verbose = command::output(Command::new("rustc").current_dir(folder).arg("-vV"))?;
        let host = verbose
            .lines()
            .find_map(|line| line.strip_prefix("host: "))
            .context("rustc -vV names no host")?;
        let bin = sysroot(folder)?.join("lib/rustlib").join(host).join("bin");
        let linker = Self {
            wasm_component_ld: bin.join(format!("wasm-component-ld{EXE_SUFFIX}")),
            wasm_ld: bin.join(format!("gcc-ld/wasm-ld{EXE_SUFFIX}")),
        };
        for path in [&linker.wasm_component_ld, &linker.wasm_ld] {
            ensure!(
                path.is_file(),
                "{} is missing: use a Rust toolchain of rustup (1.95 or newer), which contains it",
                path.display()
            );
        }
        Ok(linker)
    }
}

/// Returns the entry of the cache with the compiler that has the target's standard library.
pub(crate) fn cached() -> Option<PathBuf> {
    cache::existing_entry(&format!("rust-debian-{TARGET}")).ok().flatten()
}

/// Returns the folder of the libraries of the compiler that is used in a folder.
pub(crate) fn sysroot(folder: &Path) -> Result<PathBuf> {
    let mut rustc = Command::new("rustc");
    let sysroot = command::output(rustc.current_dir(folder).args(["--print", "sysroot"]))
        .context("no Rust compiler: install rustup and Rust 1.95 or newer")?;
    Ok(PathBuf::from(sysroot.trim()))
}

/// Returns whether the compiler of this sysroot has the target's standard library.
pub(crate) fn has_target(sysroot: &Path) -> bool {
    let lib = sysroot.join("lib/rustlib").join(TARGET).join("lib");
    let mut names = fs::read_dir(lib).into_iter().flatten().flatten().map(|file| file.file_name());
    names.any(|name| name.to_string_lossy().starts_with("libstd-"))
}

/// Unpacks Debian's compiler into `folder`, and builds the target's standard library, which is in no package.
fn build(folder: &Path) -> Result<()> {
    progress::step("downloading Debian's Rust", || {
        let packages = ["rustc-web".to_owned(), "rust-web-src".to_owned()];
        debian::unpack_with_dependencies(&packages, folder)
    })?;
    let rustc = folder.join("rustc");
    write_wrapper(&rustc)?;
    progress::step(&format!("building the standard library for {TARGET}"), || {
        let package = folder.join("std");
        fs::create_dir_all(package.join("src"))?;
        fs::write(package.join("src/lib.rs"), "")?;
        fs::write(
            package.join("Cargo.toml"),
            "[package]\nname = \"empty\"\nedition = \"2024\"\n[profile.release]\npanic = \"abort\"\n[workspace]\n",
        )?;
        command::run(
            Command::new("cargo")
                .current_dir(&package)
                .args(["build", "--release", "--target", TARGET, "-Zbuild-std=std,panic_abort"])
                .env("RUSTC", &rustc)
                .env("RUSTC_BOOTSTRAP", "1")
                .env("CARGO_TARGET_DIR", package.join("target"))
                .env_remove("CARGO_ENCODED_RUSTFLAGS")
                // Guests can then be built with and without link-time optimization.
                .env("RUSTFLAGS", "-Cembed-bitcode=yes"),
        )?;
        let lib = folder.join("usr/lib/rustlib").join(TARGET).join("lib");
        fs::create_dir_all(&lib)?;
        for file in fs::read_dir(package.join("target").join(TARGET).join("release/deps"))? {
            let path = file?.path();
            let name = path.file_name().unwrap_or_default();
            if path.extension().is_some_and(|extension| extension == "rlib") && name != "libempty.rlib" {
                fs::copy(&path, lib.join(name))?;
            }
        }
        fs::remove_dir_all(&package)?;
        // The sources are the largest part, and are no longer needed.
        fs::remove_dir_all(folder.join("usr/src"))?;
        let id = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?;
        fs::write(folder.join("id"), id.as_secs().to_string())?;
        Ok(())
    })
}

/// Writes the program that cargo runs as rustc: Debian's rustc with Debian's libraries, relative to its own
/// path.
#[cfg(unix)]
fn write_wrapper(rustc: &Path) -> Result<()> {
    use std::os::unix::fs::PermissionsExt;

    let script = "#!/bin/sh\n\
        here=$(dirname \"$(readlink -f \"$0\")\")\n\
        libraries=$(echo \"$here\"/usr/lib/*-linux-gnu | tr ' ' ':')\n\
        LD_LIBRARY_PATH=$libraries exec \"$here/usr/bin/rustc\" \"$@\"\n";
    fs::write(rustc, script)?;
    fs::set_permissions(rustc, fs::Permissions::from_mode(0o755))?;
    Ok(())
}

#[cfg(not(unix))]
fn write_wrapper(_rustc: &Path) -> Result<()> {
    anyhow::bail!("Debian's Rust runs on Linux only")
}

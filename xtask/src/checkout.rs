//! Paths in this checkout.

use std::path::{Path, PathBuf};

/// Returns the checkout's root.
pub(crate) fn root() -> &'static Path {
    let xtask = Path::new(env!("CARGO_MANIFEST_DIR"));
    xtask.parent().unwrap_or(xtask)
}

/// Returns the folder of the WIT package.
pub(crate) fn wit() -> PathBuf {
    root().join("wit")
}

/// Returns the folder of the SDKs.
pub(crate) fn guest_sdk() -> PathBuf {
    root().join("guest-sdk")
}

/// Returns the folder of built guests (`NAME.wasm`). It does not depend on cargo's target directory, since
/// plugin files contain this path.
pub(crate) fn guests() -> PathBuf {
    root().join("target/guests")
}

/// Returns the folder in which the build of a guest or language keeps its files.
pub(crate) fn guest_build(what: &str) -> PathBuf {
    guests().join("build").join(what)
}

/// Returns a program that cargo built in the same folder as this one.
pub(crate) fn program(name: &str) -> anyhow::Result<PathBuf> {
    Ok(std::env::current_exe()?.with_file_name(name))
}

/// Returns cargo's build folder, which contains this program.
pub(crate) fn target() -> anyhow::Result<PathBuf> {
    let xtask = std::env::current_exe()?;
    xtask
        .ancestors()
        .nth(2)
        .map(Path::to_owned)
        .ok_or_else(|| anyhow::anyhow!("xtask is not in a target directory"))
}

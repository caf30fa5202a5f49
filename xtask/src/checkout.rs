//! Where things are in this checkout.

use std::path::{Path, PathBuf};

/// The checkout's root.
pub(crate) fn root() -> &'static Path {
    let xtask = Path::new(env!("CARGO_MANIFEST_DIR"));
    xtask.parent().unwrap_or(xtask)
}

/// The contract.
pub(crate) fn wit() -> PathBuf {
    root().join("wit")
}

/// Where built guests go, as `NAME.wasm`, whatever target directory the host uses: plugin files name this place.
pub(crate) fn guests() -> PathBuf {
    root().join("target/guests")
}

/// What guest builds leave between runs, by language or guest.
pub(crate) fn guest_build(what: &str) -> PathBuf {
    guests().join("build").join(what)
}

/// A program that cargo has built beside this one.
pub(crate) fn program(name: &str) -> anyhow::Result<PathBuf> {
    Ok(std::env::current_exe()?.with_file_name(name))
}

/// The folder that cargo builds into, in which this program is.
pub(crate) fn target() -> anyhow::Result<PathBuf> {
    let xtask = std::env::current_exe()?;
    xtask
        .ancestors()
        .nth(2)
        .map(Path::to_owned)
        .ok_or_else(|| anyhow::anyhow!("xtask is in no target folder"))
}

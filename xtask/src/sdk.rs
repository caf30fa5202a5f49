//! The checks of each SDK with the tools of its language: tests, types, format, lints.

pub(crate) mod go;
mod python;
mod ts;

use anyhow::Result;

/// Checks all SDKs.
pub(crate) fn check() -> Result<()> {
    go::check()?;
    python::check()?;
    ts::check()
}

//! The checks of each SDK with the tools of its language: tests, types, format, lints.

mod c;
pub(crate) mod go;
pub(crate) mod python;
mod rust;
mod ts;

use anyhow::Result;

/// Checks all SDKs.
pub(crate) fn check() -> Result<()> {
    rust::check()?;
    c::check()?;
    go::check()?;
    python::check()?;
    ts::check()
}

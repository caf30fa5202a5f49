//! The checks of each SDK with the tools of its language: tests, types, format, lints.

mod python;
mod ts;

use anyhow::Result;

/// Checks all SDKs.
pub(crate) fn check() -> Result<()> {
    python::check()?;
    ts::check()
}

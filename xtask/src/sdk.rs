//! The checks of each SDK with the tools of its language: tests, types, format, lints.

mod c;
pub(crate) mod go;
pub(crate) mod python;
mod readme;
mod rust;
mod ts;

use anyhow::Result;
use oarlock_guest_build::Language;

use crate::missing::Missing;
use crate::progress;

/// The name of an SDK, the languages whose tools its checks need, and the checks.
type Check = (&'static str, &'static [Language], fn() -> Result<()>);

/// Checks all SDKs, except those whose toolchain is missing.
pub(crate) fn check(missing: &Missing) -> Result<()> {
    rust::check()?;
    // clang-format is a package for Python.
    let checks: [Check; 4] = [
        ("C", &[Language::C, Language::Python], c::check),
        ("Go", &[Language::Go], go::check),
        ("Python", &[Language::Python], python::check),
        ("TypeScript", &[Language::TypeScript], ts::check),
    ];
    for (name, needs, check) in checks {
        match needs.iter().find_map(|language| missing.of(*language)) {
            Some(lack) => progress::say(format!("SKIPPED the checks of the SDK for {name}: {lack}")),
            None => check()?,
        }
    }
    Ok(())
}

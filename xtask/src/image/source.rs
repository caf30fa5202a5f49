//! What an image is made of: version, commit and time.

use std::env;
use std::fs;
use std::ops::Range;
use std::process::Command;

use anyhow::{Context, Result, bail};
use oci_spec::image::Arch;

use crate::checkout;
use crate::toolchain::command;

pub(super) struct Source {
    /// The version of the workspace.
    pub(super) version: String,
    /// The commit, if this is a checkout of git.
    pub(super) revision: Option<String>,
    /// The time of all files and of the image, in seconds since 1970.
    pub(super) time: u64,
    /// The processor of the binary.
    pub(super) architecture: Arch,
}

// === impl Source ===

impl Source {
    /// Returns the source. Without a time it is that of the last commit, or 0.
    pub(super) fn find(time: Option<u64>) -> Result<Self> {
        let manifest = fs::read_to_string(checkout::root().join("Cargo.toml"))?;
        let manifest: toml::Table = toml::from_str(&manifest)?;
        let version = manifest["workspace"]["package"]["version"].as_str().context("no version")?;
        Ok(Self {
            version: version.to_owned(),
            revision: git(&["rev-parse", "HEAD"]),
            time: time.or_else(time_of_commit).unwrap_or(0),
            architecture: architecture(env::consts::ARCH)?,
        })
    }

    /// Returns the time as the image's configuration has it, such as `2026-11-23T04:00:00Z`.
    pub(super) fn created(&self) -> Result<String> {
        let seconds = i64::try_from(self.time)?;
        Ok(jiff::Timestamp::from_second(seconds)?.to_string())
    }
}

/// Checks that a program is for this system and processor: its libraries are those of this machine.
pub(super) fn check(program: &[u8]) -> Result<()> {
    /// The magic number, and the processor.
    const PARTS: [Range<usize>; 2] = [0..4, 18..20];
    let own = fs::read("/proc/self/exe").context("cannot read /proc/self/exe")?;
    if PARTS.into_iter().all(|part| program.get(part.clone()).is_some_and(|it| it == &own[part])) {
        return Ok(());
    }
    bail!("it is built for another system or processor. Fix: build the image on a machine of that kind")
}

fn time_of_commit() -> Option<u64> {
    git(&["log", "-1", "--format=%ct"])?.parse().ok()
}

fn git(arguments: &[&str]) -> Option<String> {
    let output = command::output(Command::new("git").current_dir(checkout::root()).args(arguments)).ok()?;
    Some(output.trim().to_owned())
}

fn architecture(name: &str) -> Result<Arch> {
    match name {
        "x86_64" => Ok(Arch::Amd64),
        "aarch64" => Ok(Arch::ARM64),
        other => bail!("images are built for x86_64 and aarch64, and this machine is {other}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_for_another_processor_is_refused() {
        let mut program = fs::read("/proc/self/exe").unwrap();
        check(&program).unwrap();
        program[18] ^= 0xff;
        let error = check(&program).unwrap_err().to_string();
        assert!(error.contains("another system or processor"), "{error}");
        check(b"#!/bin/sh").unwrap_err();
        check(b"").unwrap_err();
    }
}

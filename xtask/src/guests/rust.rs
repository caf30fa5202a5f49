//! Rust guests: members of the workspaces `plugins/`, `tests/fixtures/` and `bench/guests/`. Cargo detects
//! changes.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Result;
use oarlock_guest_build::{Project, install};

use crate::toolchain::command;
use crate::toolchain::rust::{TARGET, Toolchain};
use crate::{checkout, progress};

/// Builds the guests, one workspace at a time.
pub(super) fn build(guests: &[Project]) -> Result<()> {
    let toolchain = Toolchain::find(checkout::root())?;
    let target_dir = checkout::guest_build(&toolchain.id()?);
    let mut workspaces: BTreeMap<&Path, Vec<&Project>> = BTreeMap::new();
    for guest in guests {
        workspaces.entry(guest.folder.parent().unwrap_or(&guest.folder)).or_default().push(guest);
    }
    for (workspace, guests) in workspaces {
        let names: Vec<_> = guests.iter().map(|guest| guest.name.as_str()).collect();
        progress::step(&format!("Rust: {}", names.join(", ")), || {
            let mut cargo = toolchain.cargo();
            cargo.current_dir(workspace).args(["build", "--release", "--target", TARGET]);
            cargo.arg("--target-dir").arg(&target_dir);
            cargo.args(names.iter().flat_map(|name| ["--package", name]));
            command::run(&mut cargo)?;
            for guest in &guests {
                let artifact = format!("{TARGET}/release/{}.wasm", guest.name.replace('-', "_"));
                install(&target_dir.join(artifact), &guest.component)?;
            }
            Ok(())
        })?;
    }
    Ok(())
}

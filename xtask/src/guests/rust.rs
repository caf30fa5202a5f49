//! Rust guests: members of the workspaces `plugins/`, `tests/fixtures/` and `bench/guests/`. Cargo detects
//! changes.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Result;

use super::{Guest, install};
use crate::progress;
use crate::toolchain::command;
use crate::toolchain::rust::{TARGET, Toolchain};

/// Builds the guests, one workspace at a time.
pub(super) fn build(guests: &[Guest]) -> Result<()> {
    let toolchain = Toolchain::find()?;
    let target_dir = toolchain.target_dir()?;
    let mut workspaces: BTreeMap<&Path, Vec<&Guest>> = BTreeMap::new();
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
            for name in &names {
                let artifact = format!("{TARGET}/release/{}.wasm", name.replace('-', "_"));
                install(name, &target_dir.join(artifact))?;
            }
            Ok(())
        })?;
    }
    Ok(())
}

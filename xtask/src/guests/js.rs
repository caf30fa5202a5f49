//! TypeScript and JavaScript guests: an npm project whose `main` is the plugin.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};

use super::{Guest, WORLD, copy, fresh_folder, install, stamp};
use crate::toolchain::command;
use crate::toolchain::node::Packages;
use crate::{checkout, progress};

/// Builds a guest: types of the WIT package, a type check, a component with the engine QuickJS.
pub(super) fn build(guest: &Guest) -> Result<()> {
    stamp::unless_unchanged(guest, include_str!("js.rs"), || {
        let packages = Packages::install(&guest.folder)?;
        progress::step(&format!("JavaScript: {}", guest.name), || {
            let component = compile(guest, &packages)?;
            install(&guest.name, &component)
        })
    })
}

fn compile(guest: &Guest, packages: &Packages) -> Result<PathBuf> {
    let folder = fresh_folder(&checkout::guest_build(&guest.name))?;
    let project = folder.join("project");
    copy(&guest.folder, &project)?;

    if project.join("tsconfig.json").is_file() {
        let mut types = packages.program("jco");
        types.current_dir(&project).arg("guest-types").arg(checkout::wit());
        types.args(["--world-name", WORLD, "--out-dir", "types"]);
        command::run(&mut types)?;
        command::run(packages.program("tsc").current_dir(&project).arg("--noEmit"))?;
    }

    let component = folder.join("component.wasm");
    let mut componentize = packages.program("jco");
    componentize.current_dir(&project).arg("componentize").arg(main(&project.join("package.json"))?);
    componentize.arg("--wit").arg(checkout::wit()).args(["--world-name", WORLD]);
    // The WIT package has no async functions. WASI is not stubbed, since exceptions and console.log need it.
    componentize.args(["--backend", "quickjs", "--backend-qjs-disable-async"]);
    componentize.arg("--out").arg(&component);
    command::run(&mut componentize)?;
    Ok(component)
}

/// Returns the project's main module.
fn main(package_json: &std::path::Path) -> Result<String> {
    let text = fs::read_to_string(package_json)?;
    let package: serde_json::Value =
        serde_json::from_str(&text).with_context(|| format!("{} is not JSON", package_json.display()))?;
    let main =
        package["main"].as_str().with_context(|| format!("{} has no `main`", package_json.display()))?;
    Ok(main.to_owned())
}

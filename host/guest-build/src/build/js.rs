//! TypeScript and JavaScript: an npm project whose `main` is the plugin.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::{Outcome, copy, fresh_folder, give_to_editors, install};
use crate::toolchain::command;
use crate::toolchain::node::Packages;
use crate::{Project, progress};

/// Where the types of the WIT package are in the project, for the check and for editors.
const TYPES: &str = ".oarlock/types";

/// Builds types of the WIT package, checks types, builds a component with the engine QuickJS.
pub(super) fn build(project: &Project) -> Result<Outcome> {
    let packages = Packages::install(&project.folder)?;
    progress::step(&format!("{}: {}", project.language, project.name), || {
        install(&compile(project, &packages)?, &project.component)
    })
}

fn compile(project: &Project, packages: &Packages) -> Result<PathBuf> {
    let world = project.world()?;
    let folder = fresh_folder(&project.build_folder)?;
    let copied = folder.join("project");
    copy(&project.folder, &copied)?;

    if copied.join("tsconfig.json").is_file() {
        let mut types = packages.program("jco");
        types.current_dir(&copied).arg("guest-types").arg(&project.wit);
        types.args(["--world-name", &world, "--out-dir", TYPES]);
        command::run(&mut types)?;
        give_to_editors(project, &copied.join(TYPES), "types")?;
        command::compile("tsc", packages.program("tsc").current_dir(&copied).arg("--noEmit"))?;
    }

    let component = folder.join("component.wasm");
    let mut componentize = packages.program("jco");
    componentize.current_dir(&copied).arg("componentize").arg(main(&project.folder.join("package.json"))?);
    componentize.arg("--wit").arg(&project.wit).args(["--world-name", &world]);
    // The WIT package has no async functions. WASI is not stubbed, since exceptions and console.log need it.
    componentize.args(["--backend", "quickjs", "--backend-qjs-disable-async"]);
    componentize.arg("--out").arg(&component);
    command::compile("jco componentize", &mut componentize)?;
    Ok(component)
}

/// Returns the project's main module.
fn main(package_json: &Path) -> Result<String> {
    let text = fs::read_to_string(package_json)?;
    let package: serde_json::Value =
        serde_json::from_str(&text).with_context(|| format!("{} is not JSON", package_json.display()))?;
    let main =
        package["main"].as_str().with_context(|| format!("{} has no `main`", package_json.display()))?;
    Ok(main.to_owned())
}

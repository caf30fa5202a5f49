//! TypeScript and JavaScript: an npm project whose `main` is the plugin. The component contains what the main
//! module imports: other modules, the SDK, and packages that `package.json` names.

mod sdk;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::{Outcome, copy, fresh_folder, give_to_editors, install};
use crate::toolchain::command;
use crate::toolchain::node::Packages;
use crate::{Project, progress};

use sdk::Sdk;

/// Where the types of the WIT package are in the project, for the check and for editors.
const TYPES: &str = ".oarlock/types";

/// The configuration of the bundler: the host provides the interfaces of the contract, and no package
/// resolves to its variant for Node.js.
const BUNDLE_CONFIG: &str = r#"export default {
  external: [/^oarlock:/],
  resolve: { conditionNames: ["import", "module", "default"] },
};
"#;

/// What the engine prints when a module calls the host at its top level.
const CALL_AT_TOP_LEVEL: &str = "unknown import: `oarlock:plugin/";

/// What the engine prints when the main module throws, or lacks an export of its world.
const NO_EXPORT: &str = "exported variable '";

/// Returns a text that represents the tools, their arguments and the SDK.
pub(super) fn recipe(project: &Project) -> Result<String> {
    Ok(format!("{}{}{}", include_str!("js.rs"), include_str!("js/sdk.rs"), sdk::digest(project)?))
}

/// Builds types of the WIT package, checks types, builds a component with the engine QuickJS.
pub(super) fn build(project: &Project) -> Result<Outcome> {
    let sdk = Sdk::of(project)?;
    if let Some(sdk) = &sdk {
        sdk.introduce_to_npm(project)?;
    }
    let packages = Packages::install(&project.folder)?;
    progress::step(&format!("{}: {}", project.language, project.name), || {
        install(&compile(project, &packages, sdk.as_ref())?, &project.component)
    })
}

fn compile(project: &Project, packages: &Packages, sdk: Option<&Sdk>) -> Result<PathBuf> {
    let world = project.world()?;
    let folder = fresh_folder(&project.build_folder)?;
    let copied = folder.join("project");
    copy(&project.folder, &copied)?;
    packages.link(&copied)?;
    if let Some(sdk) = sdk {
        sdk.put_into(project, packages, &copied)?;
    }

    if copied.join("tsconfig.json").is_file() {
        // The SDK has the types of the contract.
        if sdk.is_none() {
            let mut types = packages.program("jco")?;
            types.current_dir(&copied).arg("guest-types").arg(&project.wit);
            types.args(["--world-name", &world, "--out-dir", TYPES]);
            command::run(&mut types)?;
            give_to_editors(project, &copied.join(TYPES), "types")?;
        }
        command::compile("tsc", packages.program("tsc")?.current_dir(&copied).arg("--noEmit"))?;
    }

    let config = folder.join("bundle.mjs");
    fs::write(&config, BUNDLE_CONFIG).with_context(|| format!("cannot write {}", config.display()))?;
    let component = folder.join("component.wasm");
    let mut componentize = packages.program("jco")?;
    componentize.current_dir(&copied).arg("componentize").arg(main(&project.folder.join("package.json"))?);
    componentize.arg("--bundle").arg("--bundle-config").arg(&config);
    componentize.arg("--wit").arg(&project.wit).args(["--world-name", &world]);
    // The WIT package has no async functions. WASI is not stubbed, since exceptions need it.
    componentize.args(["--backend", "quickjs", "--backend-qjs-disable-async"]);
    componentize.arg("--out").arg(&component);
    command::compile("jco componentize", &mut componentize).map_err(|error| explain(error, &world))?;
    Ok(component)
}

/// Adds the cause to errors of the engine that do not name it.
fn explain(error: anyhow::Error, world: &str) -> anyhow::Error {
    let text = error.to_string();
    if text.contains(CALL_AT_TOP_LEVEL) {
        return error.context(
            "a module calls the host at its top level, which runs during the build, without a host: call it in a \
             handler, or in the function that `plugin(() => …)` takes",
        );
    }
    if text.contains(NO_EXPORT) {
        return error.context(format!(
            "the main module throws an exception at its top level, or does not export what the world {world} in \
             oarlock.toml names: `metadata`, and `handler` or `reconciler` or both"
        ));
    }
    error
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

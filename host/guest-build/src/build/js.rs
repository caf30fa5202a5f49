//! TypeScript and JavaScript: an npm project whose `main` is the plugin. The component contains what the main
//! module imports: other modules, the SDK, and packages that `package.json` names.

mod bundle;
mod sdk;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::{Outcome, copy, fresh_folder, give_to_editors, install};
use crate::toolchain::command;
use crate::toolchain::node::Packages;
use crate::{Project, progress};

use bundle::Bundle;
use sdk::Sdk;

/// Where the types of the WIT package are in the project, for the check and for editors.
const TYPES: &str = ".oarlock/types";

/// What the engine prints when a module calls the host at its top level.
const CALL_AT_TOP_LEVEL: &str = "unknown import: `oarlock:plugin/";

/// What the engine prints when the main module throws.
const NO_EXPORT: &str = "exported variable '";

/// Returns a text that represents the tools, their arguments and the SDK.
pub(super) fn recipe(project: &Project) -> Result<String> {
    let sources = [include_str!("js.rs"), include_str!("js/bundle.rs"), include_str!("js/sdk.rs")];
    Ok(format!("{}{}", sources.concat(), sdk::digest(project)?))
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

    let bundle = Bundle::write(&folder, &project.wit)?;
    let component = folder.join("component.wasm");
    let mut componentize = packages.program("jco")?;
    let main = main(&project.folder.join("package.json"))?;
    componentize.current_dir(&copied).arg("componentize").arg(&main);
    componentize.arg("--bundle").arg("--bundle-config").arg(&bundle.config);
    componentize.arg("--wit").arg(&bundle.wit).args(["--world-name", &world]);
    // The WIT package has no async functions. WASI is not stubbed, since exceptions need it.
    componentize.args(["--backend", "quickjs", "--backend-qjs-disable-async"]);
    componentize.arg("--out").arg(&component);
    let result = command::compile("jco componentize", &mut componentize);
    // Before other errors, which may follow from these.
    bundle.check_imports(&copied)?;
    bundle.check_exports(&main, &world)?;
    result.map_err(explain)?;
    Ok(component)
}

/// Adds the cause to errors of the engine that do not name it, and takes the stack of jco itself away.
fn explain(error: anyhow::Error) -> anyhow::Error {
    let text = error.to_string();
    let is_of_jco = |line: &&str| {
        line.trim_start().starts_with("at ") && line.contains("(file://")
            || line.trim_start().starts_with("at async file://")
            || line.trim() == "errors: [Getter/Setter]"
    };
    let lines: Vec<&str> = text.lines().filter(|line| !is_of_jco(line)).collect();
    let error = anyhow::anyhow!(lines.join("\n"));
    if text.contains(CALL_AT_TOP_LEVEL) {
        return error.context(
            "a module calls the host at its top level, which runs during the build, without a host: call it in a \
             handler, or in the function that `plugin(() => …)` takes",
        );
    }
    if text.contains(NO_EXPORT) {
        return error
            .context("the main module throws an exception at its top level, which runs during the build");
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_of_the_bundler_is_shown_without_the_stack_of_jco() {
        let shown = |text: &'static str| format!("{:#}", explain(anyhow::anyhow!(text)));
        let text = "Error: Build failed with 1 error:\n[PARSE_ERROR] Unexpected token\n    \
                    at unwrap (file:///cache/npm-1/rolldown.mjs:78:128)\n    \
                    at async file:///cache/npm-1/jco.js:340:17 {\n  errors: [Getter/Setter]";
        assert_eq!(shown(text), "Error: Build failed with 1 error:\n[PARSE_ERROR] Unexpected token");
        // The stack of the plugin stays.
        let text = "exported variable 'handler'\n    at watch (/plugin.js:1026:57)";
        assert_eq!(
            shown(text),
            "the main module throws an exception at its top level, which runs during the build: \
             exported variable 'handler'\n    at watch (/plugin.js:1026:57)"
        );
    }
}

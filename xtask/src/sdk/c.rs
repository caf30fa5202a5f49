//! The SDK for C: its format, and its tests, which run on this machine against a fake host. Builds of plugins
//! compile it with warnings as errors.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use oarlock_guest_build::bindings;

use crate::toolchain::command;
use crate::toolchain::python::Tools;
use crate::{checkout, progress};

/// The name of the world in the bindings that the SDK includes.
const BINDINGS: &str = "oarlock-bindings";

/// Checks the SDK.
pub(crate) fn check() -> Result<()> {
    let sdk = checkout::guest_sdk().join("c");
    progress::step("the SDK for C: format", || format(&sdk))?;
    progress::step("the SDK for C: tests", || test(&sdk))
}

/// Checks the format of the SDK, of the plugins and templates that use it.
fn format(sdk: &Path) -> Result<()> {
    let requirements = fs::read_to_string(sdk.join("test/requirements.txt"))
        .context("cannot read requirements.txt of the SDK for C")?;
    let mut clang_format = Tools::install(&requirements)?.program("clang-format");
    clang_format.arg(format!("--style=file:{}", sdk.join(".clang-format").display()));
    clang_format.args(["--dry-run", "--Werror"]);
    let mut folders: Vec<PathBuf> = ["include", "src", "test"].map(|name| sdk.join(name)).into();
    let others = ["plugins/mirror-c", "templates/c/handler", "templates/c/reconciler"];
    folders.extend(others.map(|folder| checkout::root().join(folder)));
    for folder in folders {
        clang_format.args(sources(&folder, &["c", "h"])?);
    }
    command::run(&mut clang_format)
}

/// Compiles the SDK and its tests for this machine, and runs them with checks of memory.
fn test(sdk: &Path) -> Result<()> {
    let folder = checkout::guest_build("sdk-c");
    fs::create_dir_all(&folder)?;
    bindings::c(&checkout::wit(), "plugin", BINDINGS, &folder)?;
    let generated = folder.join("oarlock_bindings.c");
    let helpers = folder.join("helpers.c");
    let text = fs::read_to_string(&generated)?;
    fs::write(&helpers, helpers_of(&text).context("the bindings have no helper functions")?)?;

    let program = folder.join("tests");
    let mut cc = Command::new("cc");
    cc.args(["-std=c17", "-g", "-O1", "-Wall", "-Wextra", "-Werror"]);
    cc.args(["-fsanitize=address,undefined", "-fno-sanitize-recover=all"]);
    cc.args(["-DOARLOCK_HANDLER", "-DOARLOCK_RECONCILER"]);
    cc.arg("-I").arg(sdk.join("include")).arg("-I").arg(&folder);
    cc.args(sources(&sdk.join("src"), &["c"])?).args(sources(&sdk.join("test"), &["c"])?);
    command::compile("cc", cc.arg(helpers).arg("-o").arg(&program))?;
    command::run(&mut Command::new(program))
}

/// Returns the part of the bindings that frees their types. The rest calls the host, which the tests replace.
fn helpers_of(bindings: &str) -> Option<String> {
    let (_, after) = bindings.split_once("// Helper Functions")?;
    let (helpers, _) = after.split_once("// Component Adapters")?;
    let head = "#include \"oarlock_bindings.h\"\n#include <stdlib.h>\n#include <string.h>\n\
                void *cabi_realloc(void *ptr, size_t old_size, size_t align, size_t new_size);\n";
    Some(format!("{head}{helpers}"))
}

/// Returns the files in a folder with these extensions, in order.
fn sources(folder: &Path, extensions: &[&str]) -> Result<Vec<PathBuf>> {
    let mut paths = vec![];
    for file in fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))? {
        let path = file?.path();
        if extensions.iter().any(|wanted| path.extension().is_some_and(|extension| extension == *wanted)) {
            paths.push(path);
        }
    }
    paths.sort();
    Ok(paths)
}

//! The SDK for C: its format, and its tests and those of the templates, which run on this machine with the
//! host in memory. Builds of plugins compile it with warnings as errors.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use oarlock_guest_build::new::{Kind, NewPlugin};
use oarlock_guest_build::{Language, Project, write_c_test_sdk};

use crate::toolchain::command;
use crate::toolchain::python::Tools;
use crate::{checkout, progress};

/// Checks the SDK.
pub(crate) fn check() -> Result<()> {
    let sdk = checkout::guest_sdk().join("c");
    progress::step("the SDK for C: format", || format(&sdk))?;
    progress::step("the SDK for C: tests", || test(&sdk))?;
    [Kind::Handler, Kind::Reconciler].into_iter().try_for_each(|kind| {
        progress::step(&format!("the SDK for C: the template, {kind:?}"), || test_template(kind))
    })
}

/// Checks the format of the SDK, and of the plugins, templates and fixtures that use it.
fn format(sdk: &Path) -> Result<()> {
    let requirements = fs::read_to_string(sdk.join("test/requirements.txt"))
        .context("cannot read requirements.txt of the SDK for C")?;
    let mut clang_format = Tools::install(&requirements)?.program("clang-format");
    clang_format.arg(format!("--style=file:{}", sdk.join(".clang-format").display()));
    clang_format.args(["--dry-run", "--Werror"]);
    let mut folders: Vec<PathBuf> = ["include", "src", "testing", "test"].map(|name| sdk.join(name)).into();
    let others = [
        "plugins/mirror-c",
        "templates/c/handler",
        "templates/c/handler/test",
        "templates/c/reconciler",
        "templates/c/reconciler/test",
        "tests/fixtures/uses-sdk-c",
    ];
    folders.extend(others.map(|folder| checkout::root().join(folder)));
    for folder in folders {
        clang_format.args(sources(&folder, &["c", "h"])?);
    }
    command::run(&mut clang_format)
}

/// Compiles the SDK and its tests for this machine, and runs them with checks of memory.
fn test(sdk: &Path) -> Result<()> {
    let folder = checkout::guest_build("sdk-c");
    write_c_test_sdk(sdk, &checkout::wit(), &folder)?;
    let tests = sources(&sdk.join("test"), &["c"])?;
    run_native(&folder, &tests, &folder.join("tests"))?;
    run_readme(sdk, &folder)
}

/// Compiles and runs the blocks of the README: the plugin, and the test of it.
fn run_readme(sdk: &Path, folder: &Path) -> Result<()> {
    let path = sdk.join("README.md");
    let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let mut blocks = vec![];
    for (idx, block) in text.split("\n```c\n").skip(1).enumerate() {
        let (block, _) = block.split_once("\n```").context("a block of the README does not end")?;
        let source = folder.join(format!("readme-{idx}.c"));
        fs::write(&source, format!("{block}\n"))?;
        blocks.push(source);
    }
    run_native(folder, &blocks, &folder.join("readme-tests")).context("the blocks of guest-sdk/c/README.md")
}

/// Compiles sources with the SDK in a folder for this machine, and runs the program.
fn run_native(folder: &Path, tests: &[PathBuf], program: &Path) -> Result<()> {
    let mut cc = Command::new("cc");
    cc.args(["-std=c17", "-g", "-O1", "-Wall", "-Wextra", "-Werror"]);
    cc.args(["-fsanitize=address,undefined", "-fno-sanitize-recover=all"]);
    cc.arg("-I").arg(folder.join("include"));
    cc.args(sources(&folder.join("src"), &["c"])?).args(sources(&folder.join("testing"), &["c"])?);
    command::compile("cc", cc.args(tests).arg("-o").arg(program))?;
    command::run(&mut Command::new(program))
}

/// Makes a plugin from the template, and runs its tests as its author would.
fn test_template(kind: Kind) -> Result<()> {
    let name = format!("template-c-{}", format!("{kind:?}").to_lowercase());
    let folder = checkout::guest_build(&name);
    if folder.exists() {
        fs::remove_dir_all(&folder).with_context(|| format!("cannot remove {}", folder.display()))?;
    }
    let language = Language::C;
    NewPlugin { name: name.parse()?, language, kind, watch: "v1/configmaps".parse()? }.write(&folder)?;
    oarlock_guest_build::build(&Project {
        component: folder.join("plugin.wasm"),
        build_folder: folder.join(".oarlock/build"),
        wit: checkout::wit(),
        sdk: checkout::guest_sdk(),
        name,
        language,
        folder: folder.clone(),
    })?;
    command::run(Command::new("make").arg("test").current_dir(&folder))
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

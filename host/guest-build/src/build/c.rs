//! C: a folder of `*.c` files.
//!
//! Sources that include `oarlock.h` are linked with the SDK. Others are written against the bindings, whose
//! names are those of the world.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use serde_json::json;

use super::{Outcome, copy, fresh_folder, install};
use crate::toolchain::c::{self, Toolchain};
use crate::toolchain::command;
use crate::toolchain::rust::Linker;
use crate::{Project, bindings, progress};

/// The world's name in the bindings that the SDK includes, whatever the world is.
const SDK_WORLD: &str = "oarlock-bindings";

/// What native tests are compiled with, in the project's folder.
const TEST_SDK: &str = ".oarlock/c-sdk";

/// A file to compile.
struct Source {
    path: PathBuf,
    /// The name of its object file, which no other source has.
    object: String,
    /// Whether it was written by a person: warnings are errors.
    is_strict: bool,
}

/// How the files of a project are compiled.
struct Flags {
    includes: Vec<PathBuf>,
    defines: Vec<&'static str>,
}

/// Returns a text that represents the tools and their arguments.
pub(super) fn recipe() -> Result<String> {
    let sdk = c::sdk();
    let version = match &sdk {
        // Releases have this file; another compiler is another file.
        Some(sdk) => format!(
            "{} {} {:?}",
            sdk.display(),
            fs::read_to_string(sdk.join("VERSION")).unwrap_or_default(),
            fs::metadata(sdk.join("bin/clang")).and_then(|clang| clang.modified()).ok()
        ),
        None => String::new(),
    };
    Ok(format!("{version}{}", include_str!("c.rs")))
}

/// Builds bindings, object files, component.
pub(super) fn build(project: &Project) -> Result<Outcome> {
    let toolchain = Toolchain::find()?;
    let linker = Linker::find(&project.folder)?;
    progress::step(&format!("C: {}", project.name), || {
        install(&link(project, &toolchain, &linker)?, &project.component)
    })
}

fn link(project: &Project, toolchain: &Toolchain, linker: &Linker) -> Result<PathBuf> {
    let world = project.world()?;
    let folder = fresh_folder(&project.build_folder)?;
    let mut sources = sources_in(&project.folder, "plugin", true)?;
    let mut flags = Flags { includes: vec![folder.clone()], defines: vec![] };
    let name = if uses_sdk(&project.folder)? {
        let sdk = project.sdk.join("c");
        write_test_sdk(&sdk, &project.wit, &project.folder.join(TEST_SDK))?;
        sources.extend(sources_in(&sdk.join("src"), "sdk", true)?);
        flags.includes.push(sdk.join("include"));
        flags.defines.extend(match world.as_str() {
            "handler-plugin" => &["-DOARLOCK_HANDLER"][..],
            "reconciler-plugin" => &["-DOARLOCK_RECONCILER"],
            _ => &["-DOARLOCK_HANDLER", "-DOARLOCK_RECONCILER"],
        });
        SDK_WORLD
    } else {
        &world
    };
    bindings::c(&project.wit, &world, name, &folder)?;
    sources.extend(sources_in(&folder, "bindings", false)?);
    write_compile_commands(project, toolchain, &flags, &sources)?;

    let mut objects = vec![];
    for source in &sources {
        let object = folder.join(&source.object);
        let mut clang = compile(toolchain, &flags, source);
        // Assertions contain the file name, but not the folder.
        if let Some(parent) = source.path.parent() {
            clang.arg(format!("-ffile-prefix-map={}/=", parent.display()));
        }
        command::compile("clang", clang.arg("-o").arg(&object))?;
        objects.push(object);
    }
    // This object file names the world of the component.
    objects.push(folder.join(format!("{}_component_type.o", name.replace('-', "_"))));

    let component = folder.join("component.wasm");
    let mut ld = Command::new(&linker.wasm_component_ld);
    ld.arg("--wasm-ld-path").arg(&linker.wasm_ld);
    ld.args(["--wasi-adapter", "reactor", "--no-entry", "--gc-sections", "--strip-debug", "-O2"]);
    ld.args(&objects)
        .arg("-L")
        .arg(&toolchain.lib)
        .arg("-lc")
        .arg(&toolchain.builtins)
        .arg("-o")
        .arg(&component);
    command::compile("wasm-component-ld", &mut ld).map_err(explain)?;
    Ok(component)
}

/// Adds what the linker does not know: which sources were compiled.
fn explain(error: anyhow::Error) -> anyhow::Error {
    let text = error.to_string();
    let undefined = text.lines().find_map(|line| line.split_once("undefined symbol: "));
    match undefined.map(|(_, symbol)| symbol.trim().to_owned()) {
        Some(symbol) => error.context(format!(
            "no source defines `{symbol}`, which the plugin uses: all files *.c directly in its folder are \
             compiled, and those in folders below are not"
        )),
        None => error,
    }
}

/// Writes the SDK, its host of tests and the types of the bindings: headers in `include`, and sources.
///
/// # Errors
///
/// When files cannot be written.
pub fn write_test_sdk(sdk: &Path, wit: &Path, place: &Path) -> Result<()> {
    let place = fresh_folder(place)?;
    for folder in ["include", "src", "testing"] {
        copy(&sdk.join(folder), &place.join(folder))?;
    }
    bindings::c_for_tests(wit, SDK_WORLD, &place.join("include"), &place.join("src"))
}

fn compile(toolchain: &Toolchain, flags: &Flags, source: &Source) -> Command {
    let mut clang = toolchain.clang();
    clang.args(["-std=c17", "-Os", "-flto=full", "-ffunction-sections", "-fno-exceptions"]);
    if source.is_strict {
        clang.args(["-Wall", "-Wextra", "-Werror"]);
    }
    clang.args(&flags.defines);
    for folder in &flags.includes {
        clang.arg("-I").arg(folder);
    }
    clang.arg("-c").arg(&source.path);
    clang
}

/// Returns the C files in a folder. `group` distinguishes their object files from those of other folders.
fn sources_in(folder: &Path, group: &str, is_strict: bool) -> Result<Vec<Source>> {
    let mut sources = vec![];
    for path in files(folder)? {
        if path.extension().is_some_and(|extension| extension == "c") {
            let stem = path.file_stem().unwrap_or_default().to_string_lossy();
            let object = format!("{group}-{stem}.o");
            sources.push(Source { object, path, is_strict });
        }
    }
    sources.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(sources)
}

/// Returns the files in a folder. An editor's lock of a source is hidden.
fn files(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut paths = vec![];
    for file in fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))? {
        let path = file?.path();
        let is_hidden = path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
        if !is_hidden {
            paths.push(path);
        }
    }
    Ok(paths)
}

/// Returns whether a source or header of the project includes the SDK's header.
fn uses_sdk(folder: &Path) -> Result<bool> {
    for path in files(folder)? {
        if path.extension().is_some_and(|extension| extension == "c" || extension == "h") {
            let text = fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
            if String::from_utf8_lossy(&text).lines().any(includes_sdk) {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

fn includes_sdk(line: &str) -> bool {
    let included =
        line.trim_start().strip_prefix('#').and_then(|rest| rest.trim_start().strip_prefix("include"));
    matches!(included.map(str::trim_start), Some(name) if name.starts_with("\"oarlock.h\"") || name.starts_with("<oarlock.h>"))
}

/// Writes how each source is compiled into `.oarlock/compile_commands.json`, for clangd.
fn write_compile_commands(
    project: &Project,
    toolchain: &Toolchain,
    flags: &Flags,
    sources: &[Source],
) -> Result<()> {
    let entries = sources.iter().map(|source| {
        let clang = compile(toolchain, flags, source);
        let words = std::iter::once(clang.get_program()).chain(clang.get_args());
        let arguments: Vec<_> = words.map(|word| word.to_string_lossy()).collect();
        json!({"directory": project.folder, "file": source.path, "arguments": arguments})
    });
    let entries: Vec<_> = entries.collect();
    let path = project.folder.join(".oarlock/compile_commands.json");
    crate::embedded::write(&path, serde_json::to_string_pretty(&entries)?.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_project_uses_the_sdk_if_it_includes_its_header() {
        for line in ["#include \"oarlock.h\"", "#include <oarlock.h>", "  # include <oarlock.h> // SDK"] {
            assert!(includes_sdk(line), "{line}");
        }
        for line in ["#include \"oarlock.hpp\"", "// #include <oarlock.h>", "#include \"handler_plugin.h\""] {
            assert!(!includes_sdk(line), "{line}");
        }
    }

    #[test]
    fn a_function_without_a_definition_is_named() {
        let linker = "rust-lld: error: /build/component.wasm.lto.o: undefined symbol: helper\nerror: failed";
        let error = format!("{:#}", explain(anyhow::anyhow!(linker)));
        assert!(
            error.starts_with("no source defines `helper`, which the plugin uses: all files *.c "),
            "{error}"
        );
        assert!(error.ends_with(linker), "{error}");
        assert_eq!(explain(anyhow::anyhow!("other")).to_string(), "other");
    }

    #[test]
    fn sources_of_the_same_name_have_different_object_files() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["handler_plugin.c", "a.c", ".#a.c", "a.h"] {
            fs::write(folder.path().join(name), "").unwrap();
        }
        let objects = |group| -> Vec<_> {
            sources_in(folder.path(), group, true).unwrap().into_iter().map(|source| source.object).collect()
        };
        assert_eq!(objects("plugin"), ["plugin-a.o", "plugin-handler_plugin.o"]);
        assert_eq!(objects("bindings"), ["bindings-a.o", "bindings-handler_plugin.o"]);
    }
}

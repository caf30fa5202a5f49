//! Go: a module on the SDK, or one whose packages `exports/export_oarlock_plugin_*` contain the plugin's
//! functions.
//!
//! A module on the SDK is built where it is. Its `go.mod` has a line `replace oarlock.dev/sdk =>
//! ./.oarlock/go-sdk` as long as the SDK is not published; the build writes this folder, which `go test`,
//! `go vet` and editors then find too.

mod module;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::{Outcome, copy, fresh_folder, install, stamp};
use crate::toolchain::command;
use crate::toolchain::go::{self, Toolchain};
use crate::toolchain::versions::GUEST_GO;
use crate::{Project, bindings, embedded, progress};

use module::Module;

/// The modules that the binary carries: the path, the folder of the SDKs, and the folder in a project.
const SDKS: [(&str, &str, &str); 2] = [
    ("oarlock.dev/sdk", "go", ".oarlock/go-sdk"),
    ("oarlock.dev/controller-runtime", "go-controller-runtime", ".oarlock/go-controller-runtime"),
];

/// The variable of the SDK that has the world.
const WORLD: &str = "oarlock.dev/sdk.world";

/// Builds a core module that calls WASI, and a component from it.
pub(super) fn build(project: &Project) -> Result<Outcome> {
    let module = Module::read(&project.folder)?;
    write_sdks(&module, &project.sdk, &project.folder)?;
    let recipe = [include_str!("go.rs"), include_str!("go/module.rs"), &go::version(GUEST_GO)];
    stamp::unless_unchanged_with(project, &recipe, &module.local_replacements(&project.folder), || {
        let toolchain = Toolchain::find(GUEST_GO)?;
        progress::step(&format!("Go: {}", project.name), || {
            install(&compile(project, &module, &toolchain)?, &project.component)
        })
    })
}

fn compile(project: &Project, module: &Module, toolchain: &Toolchain) -> Result<PathBuf> {
    let world = project.world()?;
    let folder = fresh_folder(&project.build_folder)?;
    let mut flags = "-checklinkname=0 -s -w".to_owned();
    let sources = if module.requires(SDKS[0].0) {
        flags.push_str(&format!(" -X {WORLD}={world}"));
        project.folder.clone()
    } else {
        let sources = folder.join("module");
        copy(&project.folder, &sources)?;
        bindings::go(&project.wit, &world, &module.path, &sources)?;
        sources
    };

    let core = folder.join("core.wasm");
    let mut go = toolchain.go();
    go.current_dir(&sources).envs([("GOOS", "wasip1"), ("GOARCH", "wasm")]);
    go.args(["build", "-trimpath", "-buildmode=c-shared"]).arg(format!("-ldflags={flags}")).arg("-o");
    go.arg(&core).arg(project.main_package()?);
    command::compile("go build", &mut go)?;

    let component = folder.join("component.wasm");
    bindings::encode(&project.wit, &world, &core, &component)?;
    Ok(component)
}

/// Writes the SDKs into a folder whose `go.mod` says that they are there.
pub(super) fn prepare(sdk: &Path, folder: &Path) -> Result<()> {
    write_sdks(&Module::read(folder)?, sdk, folder)
}

fn write_sdks(module: &Module, sdk: &Path, folder: &Path) -> Result<()> {
    for (path, source, place) in SDKS {
        if module.replaces(path, place) {
            write_sdk(&sdk.join(source), &folder.join(place))?;
        }
    }
    Ok(())
}

/// Makes a folder of a project the same as one of the SDKs.
fn write_sdk(source: &Path, place: &Path) -> Result<()> {
    if embedded::is_same(source, place) {
        return Ok(());
    }
    fresh_folder(place)?;
    for path in embedded::below(source)? {
        let bytes =
            fs::read(source.join(&path)).with_context(|| format!("cannot read {}", path.display()))?;
        embedded::write(&place.join(path), &bytes)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sdk_of_a_project_is_replaced_by_that_of_the_binary() {
        let folder = tempfile::tempdir().unwrap();
        let (source, place) = (folder.path().join("sdk"), folder.path().join("place"));
        embedded::write(&source.join("a.go"), b"1").unwrap();
        embedded::write(&source.join("internal/b.go"), b"2").unwrap();
        write_sdk(&source, &place).unwrap();
        assert_eq!(fs::read(place.join("internal/b.go")).unwrap(), b"2");

        let before = fs::metadata(place.join("a.go")).unwrap().modified().unwrap();
        write_sdk(&source, &place).unwrap();
        assert_eq!(fs::metadata(place.join("a.go")).unwrap().modified().unwrap(), before, "not written");

        fs::remove_file(source.join("internal/b.go")).unwrap();
        fs::write(place.join("a.go"), "changed").unwrap();
        write_sdk(&source, &place).unwrap();
        assert_eq!(fs::read(place.join("a.go")).unwrap(), b"1");
        assert!(!place.join("internal/b.go").exists());
    }
}

//! The Go SDK: its bindings, and its checks.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use oarlock_guest_build::bindings;

use crate::toolchain::command;
use crate::toolchain::go::Toolchain;
use crate::toolchain::versions::GUEST_GO;
use crate::{checkout, progress};

/// The modules to check.
const MODULES: [&str; 4] = ["guest-sdk/go", CONTROLLER_RUNTIME, "plugins/mirror-go", "plugins/team-quota"];

const CONTROLLER_RUNTIME: &str = "guest-sdk/go-controller-runtime";

/// The package of the bindings in the SDK.
const PACKAGE: &str = "oarlock.dev/sdk/internal/wit";

/// The folder of the bindings. Below `exports` there are also packages of the SDK that they call.
const FOLDER: &str = "guest-sdk/go/internal/wit";

/// The folders in it that contain only bindings.
const GENERATED: [&str; 4] = ["imports", "exports/wit_exports", "runtime", "types"];

/// The linter, as a Go module.
const STATICCHECK: &str = "honnef.co/go/tools/cmd/staticcheck@v0.8.2";

/// Writes the bindings of the Go SDK.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Writes nothing, and fails if they are out of date.
    #[arg(long)]
    check: bool,
}

// === impl Args ===

impl Args {
    pub(crate) fn run(self) -> Result<()> {
        let Self { check } = self;
        let toolchain = Toolchain::find(GUEST_GO)?;
        if check { check_bindings(&toolchain) } else { write_bindings(&toolchain) }
    }
}

/// Checks the bindings of the SDK, and in each module the format, `go vet`, staticcheck and the tests.
pub(crate) fn check() -> Result<()> {
    let toolchain = Toolchain::find(GUEST_GO)?;
    check_bindings(&toolchain)?;
    for module in MODULES {
        progress::step(&format!("checking {module}"), || {
            check_module(&toolchain, &checkout::root().join(module))
        })?;
    }
    Ok(())
}

fn check_module(toolchain: &Toolchain, module: &Path) -> Result<()> {
    let unformatted = command::output(toolchain.gofmt()?.current_dir(module).args(["-l", "."]))?;
    ensure!(unformatted.is_empty(), "gofmt has changes for {}:\n{unformatted}", module.display());
    // Generated code converts numbers into pointers, which vet refuses.
    let packages = command::output(toolchain.go().current_dir(module).args(["list", "./..."]))?;
    let packages: Vec<_> = packages.lines().filter(|package| !package.contains("/internal/wit/")).collect();
    command::run(go(toolchain, module, "vet").args(&packages))?;
    // These would analyze all of client-go, which takes minutes.
    if !module.ends_with(CONTROLLER_RUNTIME) {
        command::run(
            go(toolchain, module, "vet").args(&packages).envs([("GOOS", "wasip1"), ("GOARCH", "wasm")]),
        )?;
        command::run(go(toolchain, module, "run").arg(STATICCHECK).args(&packages))?;
    }
    command::run(go(toolchain, module, "test").args(&packages))
}

/// Fetches the sources that a module names in comments for `go generate`.
pub(crate) fn generate(module: &Path) -> Result<()> {
    let toolchain = Toolchain::find(GUEST_GO)?;
    command::run(go(&toolchain, module, "mod").arg("download"))?;
    command::run(go(&toolchain, module, "generate").arg("."))
}

fn go(toolchain: &Toolchain, module: &Path, subcommand: &str) -> Command {
    let mut go = toolchain.go();
    go.current_dir(module).arg(subcommand);
    go
}

fn write_bindings(toolchain: &Toolchain) -> Result<()> {
    let made = make_bindings(toolchain)?;
    for part in GENERATED {
        let (from, to) = (made.path().join(part), checkout::root().join(FOLDER).join(part));
        if to.exists() {
            fs::remove_dir_all(&to).with_context(|| format!("cannot remove {}", to.display()))?;
        }
        command::run(Command::new("cp").arg("-r").arg(&from).arg(&to))?;
    }
    Ok(())
}

fn check_bindings(toolchain: &Toolchain) -> Result<()> {
    let made = make_bindings(toolchain)?;
    for part in GENERATED {
        let (made, there) = (made.path().join(part), checkout::root().join(FOLDER).join(part));
        if let Err(difference) = command::run(Command::new("diff").arg("-r").arg(&there).arg(&made)) {
            bail!("the Go bindings are out of date: run `cargo xtask go-bindings`\n{difference:#}");
        }
    }
    Ok(())
}

fn make_bindings(toolchain: &Toolchain) -> Result<tempfile::TempDir> {
    let folder = tempfile::tempdir().context("cannot make a folder")?;
    bindings::go_sdk(&checkout::wit(), PACKAGE, folder.path())?;
    command::run(toolchain.gofmt()?.arg("-w").arg(folder.path()))?;
    Ok(folder)
}

//! The Go SDK: its bindings, and its checks.

mod readme;

use std::path::Path;
use std::process::Command;

use anyhow::{Result, ensure};
use oarlock_guest_build::bindings;

use crate::tool::build_fast;
use crate::toolchain::command;
use crate::toolchain::go::Toolchain;
use crate::toolchain::versions::GUEST_GO;
use crate::{checkout, progress};

/// The modules to check.
const MODULES: [&str; 4] = ["guest-sdk/go", CONTROLLER_RUNTIME, "plugins/mirror-go", "plugins/team-quota"];

const CONTROLLER_RUNTIME: &str = "guest-sdk/go-controller-runtime";

/// The linter, as a Go module.
const STATICCHECK: &str = "honnef.co/go/tools/cmd/staticcheck@v0.8.2";

/// Writes the bindings of the Go SDK.
#[derive(clap::Args)]
pub(crate) struct Args {}

// === impl Args ===

impl Args {
    pub(crate) fn run(self) -> Result<()> {
        let Self {} = self;
        write_bindings()
    }
}

/// Writes the bindings, which are not in the repository, unless they are there.
pub(crate) fn write_bindings() -> Result<()> {
    bindings::go_sdk(&checkout::wit(), &checkout::guest_sdk().join("go"))
}

/// Checks in each module the format, `go vet`, staticcheck, the tests and, in a module of the SDK, the blocks
/// of its README.
pub(crate) fn check() -> Result<()> {
    let toolchain = Toolchain::find(GUEST_GO)?;
    write_bindings()?;
    for module in MODULES {
        progress::step(&format!("checking {module}"), || {
            check_module(&toolchain, &checkout::root().join(module))
        })?;
    }
    Ok(())
}

fn check_module(toolchain: &Toolchain, module: &Path) -> Result<()> {
    if module.starts_with(checkout::guest_sdk()) {
        readme::check(module)?;
    }
    let unformatted = command::output(toolchain.gofmt()?.current_dir(module).args(["-l", "."]))?;
    let unformatted: Vec<_> = unformatted.lines().filter(|path| !path.contains("internal/wit/")).collect();
    ensure!(unformatted.is_empty(), "gofmt has changes for {}: {unformatted:?}", module.display());
    // Generated code converts numbers into pointers, which vet refuses.
    let packages = command::output(toolchain.go().current_dir(module).args(["list", "./..."]))?;
    let packages: Vec<_> = packages.lines().filter(|package| !package.contains("/internal/wit/")).collect();
    let native = |subcommand| {
        let mut go = toolchain.go();
        build_fast(go.current_dir(module), subcommand);
        go
    };
    command::run(native("vet").args(&packages))?;
    // These would analyze all of client-go, which takes minutes.
    if !module.ends_with(CONTROLLER_RUNTIME) {
        command::run(
            go(toolchain, module, "vet").args(&packages).envs([("GOOS", "wasip1"), ("GOARCH", "wasm")]),
        )?;
        command::run(go(toolchain, module, "run").arg(STATICCHECK).args(&packages))?;
    }
    command::run(native("test").args(&packages))
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

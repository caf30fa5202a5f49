//! The SDK for Rust: its format, lints, tests with all features, documentation, and that it compiles for
//! WebAssembly.

use std::process::Command;

use anyhow::Result;

use crate::toolchain::command;
use crate::toolchain::rust::{TARGET, Toolchain};
use crate::{cargo, checkout, progress};

/// The target whose standard library calls WASI. It is checked where it is installed.
const WITH_WASI: &str = "wasm32-wasip2";

/// The version of Kubernetes whose types `k8s-openapi` has, where the plugin that chooses it is missing.
const KUBERNETES: (&str, &str) = ("K8S_OPENAPI_ENABLED_VERSION", "1.36");

/// Checks the SDK.
pub(crate) fn check() -> Result<()> {
    progress::step("the SDK for Rust: format, lints, tests, documentation", || {
        command::run(native("fmt").args(["--all", "--check"]))?;
        let all = ["--workspace", "--all-features", "--locked"];
        command::run(native("clippy").args(all).args(["--all-targets", "--", "--deny=warnings"]))?;
        command::run(native("test").args(all))?;
        let mut doc = native("doc");
        doc.args(["--no-deps", "--all-features", "--locked", "--package=oarlock-sdk"]);
        command::run(doc.env("RUSTDOCFLAGS", "--deny=warnings").env(KUBERNETES.0, KUBERNETES.1))
    })?;
    progress::step("the SDK for Rust: targets of WebAssembly", || {
        let folder = checkout::guest_sdk().join("rust");
        let toolchain = Toolchain::find(&folder)?;
        let check = |target: &str| {
            let mut cargo = toolchain.cargo();
            cargo.current_dir(&folder).args([
                "check",
                "--lib",
                "--all-features",
                "--locked",
                "--target",
                target,
            ]);
            cargo.env(KUBERNETES.0, KUBERNETES.1);
            cargo.arg("--target-dir").arg(checkout::guest_build(&toolchain.id()?));
            command::run(&mut cargo)
        };
        check(TARGET)?;
        let installed = command::output(Command::new("rustup").args(["target", "list", "--installed"]));
        match installed {
            Ok(targets) if targets.lines().any(|target| target == WITH_WASI) => check(WITH_WASI),
            _ => {
                progress::say(format!(
                    "not checked: the SDK for Rust on {WITH_WASI}, which is not installed"
                ));
                Ok(())
            }
        }
    })
}

/// Returns a cargo command for this machine.
fn native(subcommand: &str) -> Command {
    let mut cargo = cargo::cargo(subcommand);
    cargo.current_dir(checkout::guest_sdk().join("rust"));
    cargo.env("CARGO_TARGET_DIR", checkout::guest_build("native"));
    cargo
}

//! Lints the crates of the workspace while cargo compiles them.
//!
//! `cargo clippy` compiles the metadata of every dependency, and a build afterwards compiles every dependency
//! again: on two cores, minutes of a run that starts without anything. Here cargo builds, and runs this
//! program in place of the compiler (`RUSTC_WORKSPACE_WRAPPER`). This program runs clippy on the crate, and
//! then the compiler.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, Result};

use crate::{checkout, progress};

/// Set for the program that runs in place of the compiler.
const IS_WRAPPER: &str = "OARLOCK_XTASK_LINTS";

/// Whether cargo lints what it compiles of the workspace.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Lints {
    /// It does, and a warning is an error.
    Deny,
    Skip,
}

// === impl Lints ===

impl Lints {
    pub(crate) fn apply(self, cargo: &mut Command) -> Result<()> {
        if self == Self::Deny {
            cargo.env("RUSTC_WORKSPACE_WRAPPER", wrapper()?).env(IS_WRAPPER, "1");
        }
        Ok(())
    }
}

/// Returns the file of this program under a name that cargo does not replace while it builds. Cargo compiles
/// a crate again when the name changes, so the name has the settings of clippy.
fn wrapper() -> Result<PathBuf> {
    let mut hasher = DefaultHasher::new();
    include_str!("lint.rs").hash(&mut hasher);
    let settings = checkout::root().join("clippy.toml");
    fs::read(&settings).with_context(|| format!("cannot read {}", settings.display()))?.hash(&mut hasher);
    let wrapper = checkout::target()?.join(format!("lints-{:016x}", hasher.finish()));
    if !wrapper.exists() {
        let copy = wrapper.with_extension("new");
        fs::copy(checkout::program("xtask")?, &copy)
            .and_then(|_| fs::rename(&copy, &wrapper))
            .with_context(|| format!("cannot write {}", wrapper.display()))?;
    }
    Ok(wrapper)
}

/// Returns whether cargo runs this program in place of the compiler.
pub(crate) fn is_wrapper() -> bool {
    env::var_os(IS_WRAPPER).is_some()
}

/// Lints and compiles, with the arguments that cargo gave this program: the compiler, and its arguments.
pub(crate) fn run_wrapper() -> Result<ExitCode> {
    let mut args = env::args_os().skip(1);
    let rustc = PathBuf::from(args.next().context("cargo names the compiler")?);
    let args: Vec<_> = args.collect();
    // Cargo also asks the compiler for its version and its settings.
    if env::var_os("CARGO_PRIMARY_PACKAGE").is_some() {
        let metadata = tempfile::tempdir().context("cannot make a folder for the metadata")?;
        let clippy = rustc.with_file_name("clippy-driver");
        let code = run(Command::new(clippy).args(lint_args(&args, metadata.path())))
            .context("lints need clippy: rustup component add clippy")?;
        if code != ExitCode::SUCCESS {
            return Ok(code);
        }
    }
    run(Command::new(rustc).args(args))
}

/// Returns the arguments for clippy: those of the compiler, except the output. Clippy writes metadata only,
/// in a folder of its own, and does not report it to cargo: other crates wait for the metadata of the
/// compiler. The files of an incremental build are the compiler's.
fn lint_args(args: &[OsString], metadata: &Path) -> Vec<OsString> {
    let mut lint_args: Vec<OsString> = Vec::new();
    let mut is_folder = false;
    for arg in args {
        let text = arg.to_string_lossy();
        if text.starts_with("incremental=") {
            // Its `-C`.
            lint_args.pop();
        } else if is_folder {
            lint_args.push(metadata.into());
        } else if text.starts_with("--emit=") {
            lint_args.push("--emit=metadata".into());
        } else if let Some(kinds) = text.strip_prefix("--json=") {
            let kinds: Vec<_> = kinds.split(',').filter(|kind| *kind != "artifacts").collect();
            lint_args.push(format!("--json={}", kinds.join(",")).into());
        } else {
            lint_args.push(arg.clone());
        }
        is_folder = text == "--out-dir";
    }
    lint_args.push("--deny=warnings".into());
    lint_args
}

/// Runs a program, and returns the code with which it ended. Cargo shows only the code, so a signal is named
/// here.
fn run(command: &mut Command) -> Result<ExitCode> {
    let program = command.get_program().to_string_lossy().into_owned();
    let status = command.status().with_context(|| format!("cannot run {program}"))?;
    if status.success() {
        return Ok(ExitCode::SUCCESS);
    }
    let code = status.code().and_then(|code| u8::try_from(code).ok());
    if code.is_none() {
        progress::say(format!("{program}: {status}"));
    }
    Ok(code.map_or(ExitCode::FAILURE, ExitCode::from))
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;

    use super::*;

    #[test]
    fn clippy_writes_metadata_in_a_folder_of_its_own() {
        let args = [
            "--crate-name",
            "example",
            "--json=diagnostic-rendered-ansi,artifacts,future-incompat",
            "--emit=dep-info,metadata,link",
            "--out-dir",
            "target/debug/deps",
            "-C",
            "incremental=target/debug/incremental",
            "-L",
            "dependency=target/debug/deps",
        ];
        let args = args.map(OsString::from);
        assert_eq!(
            lint_args(&args, Path::new("lints")),
            [
                "--crate-name",
                "example",
                "--json=diagnostic-rendered-ansi,future-incompat",
                "--emit=metadata",
                "--out-dir",
                "lints",
                "-L",
                "dependency=target/debug/deps",
                "--deny=warnings",
            ]
            .map(OsStr::new)
        );
    }
}

//! What the cargo alias `xtask` runs: builds xtask with the features that the whole workspace selects, and
//! runs it with the same arguments.
//!
//! `cargo run` selects the features of one package only. With these, forty dependencies of xtask were
//! compiled twice: once for xtask, and once for the host and the tests.

use std::env;
use std::error::Error;
use std::ffi::OsStr;
use std::path::Path;
use std::process::{Command, ExitCode};

fn main() -> ExitCode {
    match run() {
        Ok(code) => code,
        Err(error) => {
            report(&error.to_string());
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<ExitCode, Box<dyn Error>> {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut build = command(&cargo);
    build.args(["build", "--workspace", "--bin", "xtask", "--manifest-path"]);
    build.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../Cargo.toml"));
    let status = build.status().map_err(|error| format!("cannot run {}: {error}", cargo.display()))?;
    if !status.success() {
        return Err("xtask does not compile; see the output above".into());
    }
    let xtask = env::current_exe()?.with_file_name("xtask");
    let mut command = command(xtask.as_os_str());
    command.args(env::args_os().skip(1));
    replace_process(&mut command).map_err(|error| format!("cannot run {}: {error}", xtask.display()).into())
}

/// Returns a command without the variables that `cargo run` sets for this program: build scripts would see a
/// change of them and run again.
fn command(program: &OsStr) -> Command {
    let mut command = Command::new(program);
    for (name, _) in env::vars_os() {
        let is_of_launcher = name
            .to_str()
            .is_some_and(|name| name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_"));
        if is_of_launcher {
            command.env_remove(name);
        }
    }
    command
}

/// Runs the command in this process, so that a signal to it reaches xtask.
#[cfg(unix)]
fn replace_process(command: &mut Command) -> std::io::Result<ExitCode> {
    use std::os::unix::process::CommandExt;

    Err(command.exec())
}

#[cfg(not(unix))]
fn replace_process(command: &mut Command) -> std::io::Result<ExitCode> {
    let status = command.status()?;
    Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

#[expect(clippy::print_stderr, reason = "the message of a command-line program")]
fn report(error: &str) {
    eprintln!("error: {error}");
}

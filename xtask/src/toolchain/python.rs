//! Python and its packages.

use std::path::Path;
use std::process::Command;

use anyhow::{Result, bail};

use super::command;

/// Installs these packages, each as `name==version`, into a folder, and nothing anywhere else.
pub(crate) fn install(requirements: &[String], folder: &Path) -> Result<()> {
    let python = find()?;
    let mut pip = Command::new(python);
    pip.args([
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-compile",
        "--disable-pip-version-check",
        "--root-user-action=ignore",
    ]);
    pip.arg("--target").arg(folder).args(requirements);
    command::run(&mut pip)
}

/// A Python that has pip.
pub(crate) fn find() -> Result<&'static str> {
    for python in ["python3", "python", "/usr/bin/python3"] {
        if command::run(Command::new(python).args(["-m", "pip", "--version"])).is_ok() {
            return Ok(python);
        }
    }
    bail!(
        "no Python with pip: install Python 3.10 or newer with pip (on Debian: apt-get install python3-pip)"
    );
}

//! Python, which must be installed, and packages from PyPI.

use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::versions::OLDEST_PYTHON;
use super::{cache, command};
use crate::progress;

/// The installed packages of a project.
pub struct Packages {
    folder: PathBuf,
    python: &'static str,
}

// === impl Packages ===

impl Packages {
    /// Installs the packages of a `requirements.txt`, unless another project with the same file did.
    pub fn install(requirements: &Path) -> Result<Self> {
        let text = fs::read_to_string(requirements)
            .with_context(|| format!("cannot read {}", requirements.display()))?;
        let folder = cache::entry(&entry_name(&text), |folder| {
            progress::step("downloading Python packages", || {
                install(&["--requirement".as_ref(), requirements], folder)
            })
        })?;
        Ok(Self { folder, python: find()? })
    }

    /// Returns the interpreter that runs these packages.
    #[must_use]
    pub fn python(&self) -> Command {
        Command::new(self.python)
    }

    /// Returns a program of these packages.
    pub fn program(&self, name: &str) -> Command {
        let mut program = Command::new(self.python);
        program.env("PYTHONPATH", &self.folder).env_remove("VIRTUAL_ENV");
        program.arg(self.folder.join("bin").join(name));
        program
    }
}

/// Installs packages, given as pip's arguments, into a folder only.
pub fn install(packages: &[&Path], folder: &Path) -> Result<()> {
    let mut pip = Command::new(find()?);
    pip.args(["-m", "pip", "install", "--quiet", "--no-compile", "--disable-pip-version-check"]);
    // As a variable: a pip that does not know it ignores it.
    pip.env("PIP_ROOT_USER_ACTION", "ignore").arg("--target").arg(folder).args(packages);
    command::run(&mut pip)
}

/// Returns the name in the cache of the packages of a `requirements.txt`.
fn entry_name(requirements: &str) -> String {
    let mut hasher = DefaultHasher::new();
    requirements.hash(&mut hasher);
    format!("pip-{:016x}", hasher.finish())
}

/// Returns the entry of the cache with the packages of a `requirements.txt`, if it is there.
pub(crate) fn cached(requirements: &str) -> Option<PathBuf> {
    cache::existing_entry(&entry_name(requirements)).ok().flatten()
}

/// Returns a Python that is new enough and has pip.
pub(crate) fn find() -> Result<&'static str> {
    let check = format!("import sys, pip; sys.exit(sys.version_info < (3, {OLDEST_PYTHON}))");
    for python in ["python3", "python", "/usr/bin/python3"] {
        if command::run(Command::new(python).args(["-c", &check])).is_ok() {
            return Ok(python);
        }
    }
    bail!(
        "no Python 3.{OLDEST_PYTHON} or newer with pip: install it (on Debian: apt-get install python3-pip)"
    );
}

//! Python, which must be installed, and packages from PyPI.

mod requirements;

use std::env;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

pub(crate) use requirements::Requirements;

use super::versions::{GUEST_PYTHON, OLDEST_PYTHON};
use super::{cache, command};
use crate::progress;

/// The installed packages of a project.
pub struct Packages {
    tools: Tools,
    imports: Option<PathBuf>,
    sdks: Vec<&'static str>,
}

/// Installed packages that run on this machine.
pub struct Tools {
    folder: PathBuf,
    python: &'static str,
}

// === impl Packages ===

impl Packages {
    /// Installs the packages of a `requirements.txt`, unless another project with the same ones did.
    pub fn install(requirements: &Path) -> Result<Self> {
        let text = fs::read_to_string(requirements)
            .with_context(|| format!("cannot read {}", requirements.display()))?;
        let Requirements { tools, imports, sdks } = Requirements::parse(&text)?;
        let tools = Tools::install(&tools)?;
        let imports = if imports.is_empty() { None } else { Some(install_imports(&imports)?) };
        Ok(Self { tools, imports, sdks })
    }

    /// Returns the packages that run on this machine.
    #[must_use]
    pub fn tools(&self) -> &Tools {
        &self.tools
    }

    /// Returns the folder of the packages that the component imports, if there are any.
    #[must_use]
    pub fn imports(&self) -> Option<&Path> {
        self.imports.as_deref()
    }

    /// Returns the folders among the SDKs that the component imports from, which are not installed.
    #[must_use]
    pub fn sdks(&self) -> &[&'static str] {
        &self.sdks
    }
}

// === impl Tools ===

impl Tools {
    /// Installs packages, given as the text of a `requirements.txt`.
    pub fn install(requirements: &str) -> Result<Self> {
        Ok(Self { folder: entry(requirements, &[])?, python: find()? })
    }

    /// Returns the interpreter that runs these packages.
    #[must_use]
    pub fn python(&self) -> Command {
        Command::new(self.python)
    }

    /// Returns a program of these packages that is written in Python.
    #[must_use]
    pub fn program(&self, name: &str) -> Command {
        let mut program = self.python();
        program.env("PYTHONPATH", &self.folder).env_remove("VIRTUAL_ENV");
        program.arg(self.folder.join("bin").join(name));
        program
    }

    /// Returns a program of these packages that is an executable of this machine.
    #[must_use]
    pub fn binary(&self, name: &str) -> Command {
        Command::new(self.folder.join("bin").join(name))
    }

    /// Returns a module of these packages as a program, which can import modules in another folder too.
    pub fn module(&self, name: &str, imports: &Path) -> Result<Command> {
        let mut program = self.python();
        program.env("PYTHONPATH", env::join_paths([imports, &self.folder])?).env_remove("VIRTUAL_ENV");
        program.args(["-m", name]);
        Ok(program)
    }
}

/// Installs packages for the Python of components, which has no place for native code.
fn install_imports(requirements: &str) -> Result<PathBuf> {
    let python = format!("--python-version={GUEST_PYTHON}");
    let pure = ["--only-binary=:all:", "--implementation=py", "--abi=none", "--platform=any", &python]
        .map(Path::new);
    entry(requirements, &pure).with_context(|| {
        format!(
            "cannot install these packages of requirements.txt for a component, which imports packages in \
             pure Python only (wheels for `py3-none-any`): {}",
            requirements.trim().replace('\n', ", ")
        )
    })
}

/// Returns the entry of the cache with the packages of a `requirements.txt`.
fn entry(requirements: &str, options: &[&Path]) -> Result<PathBuf> {
    cache::entry(&entry_name(requirements, options), |folder| {
        progress::step("downloading Python packages", || {
            let file = folder.join("requirements.txt");
            fs::write(&file, requirements).with_context(|| format!("cannot write {}", file.display()))?;
            install(&[options, &["--requirement".as_ref(), &file]].concat(), folder)
        })
    })
}

/// Installs packages, given as pip's arguments, into a folder only.
pub fn install(packages: &[&Path], folder: &Path) -> Result<()> {
    let mut pip = Command::new(find()?);
    pip.args(["-m", "pip", "install", "--quiet", "--no-compile", "--disable-pip-version-check"]);
    // As a variable: a pip that does not know it ignores it.
    pip.env("PIP_ROOT_USER_ACTION", "ignore").arg("--target").arg(folder).args(packages);
    command::run(&mut pip)
}

/// Returns the unpacked source distribution of a package, given as `NAME==VERSION`.
pub fn source(package: &str) -> Result<PathBuf> {
    let unpacked = cache::entry(&package.replace("==", "-source-"), |folder| {
        progress::step(&format!("downloading {package}"), || {
            let mut pip = Command::new(find()?);
            pip.args(["-m", "pip", "download", "--quiet", "--no-deps", "--no-binary=:all:"]);
            command::run(pip.args(["--disable-pip-version-check", "--dest"]).arg(folder).arg(package))?;
            let archive = only_entry(folder)?;
            command::run(Command::new(find()?).args(["-m", "tarfile", "-e"]).arg(&archive).arg(folder))?;
            fs::remove_file(&archive).with_context(|| format!("cannot remove {}", archive.display()))
        })
    })?;
    only_entry(&unpacked)
}

fn only_entry(folder: &Path) -> Result<PathBuf> {
    let mut entries = fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
    match (entries.next(), entries.next()) {
        (Some(entry), None) => Ok(entry?.path()),
        _ => bail!("{} does not have one file", folder.display()),
    }
}

/// Returns the name in the cache of the packages of a `requirements.txt`.
fn entry_name(requirements: &str, options: &[&Path]) -> String {
    let mut hasher = DefaultHasher::new();
    (requirements, options).hash(&mut hasher);
    format!("pip-{:016x}", hasher.finish())
}

/// Returns the entry of the cache with the tools of a `requirements.txt`, if it is there.
pub(crate) fn cached(requirements: &Requirements) -> Option<PathBuf> {
    cache::existing_entry(&entry_name(&requirements.tools, &[])).ok().flatten()
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

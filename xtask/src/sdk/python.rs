//! The Python SDK, and what is written with it: mypy, ruff and their unit tests, without Wasm.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use oarlock_guest_build::Language;
use oarlock_guest_build::new::{Kind, NewPlugin};

use super::readme;
use crate::toolchain::command;
use crate::toolchain::python::{self, Tools};
use crate::{checkout, progress};

/// kopf, whose examples the package of its decorators runs.
const KOPF: &str = "kopf==1.45.2";

/// The plugins on the SDK.
const PLUGINS: [&str; 2] = ["mirror-python", "rollout-restart"];

/// Checks the SDK, the templates and the plugins.
pub(crate) fn check() -> Result<()> {
    let check = Check::new()?;
    progress::step("checking guest-sdk/python", || check.project(&check.sdk))?;
    let kopf = checkout::guest_sdk().join("python-kopf");
    progress::step("checking guest-sdk/python-kopf", || check.project(&kopf))?;
    for package in ["python", "python-kopf"] {
        let page = checkout::guest_sdk().join(package).join("README.md");
        progress::step(&format!("checking the Python in guest-sdk/{package}/README.md"), || {
            check.page(&page)
        })?;
    }
    for kind in [Kind::Handler, Kind::Reconciler] {
        let plugin = NewPlugin {
            name: "web-watcher".parse()?,
            language: Language::Python,
            kind,
            watch: "batch/v1/cronjobs".parse()?,
        };
        // pytest finds no tests in a folder whose name begins with a dot.
        let folder = tempfile::Builder::new().prefix("template-").tempdir()?;
        plugin.write(folder.path())?;
        progress::step(&format!("checking the Python template, {kind:?}"), || check.project(folder.path()))?;
    }
    for plugin in PLUGINS {
        let folder = checkout::root().join("plugins").join(plugin);
        progress::step(&format!("checking {plugin}"), || check.project(&folder))?;
    }
    Ok(())
}

/// Returns the folder with kopf's examples.
pub(crate) fn kopf_examples() -> Result<PathBuf> {
    Ok(python::source(KOPF)?.join("examples"))
}

struct Check {
    tools: Tools,
    sdk: PathBuf,
    stubs: PathBuf,
    work: PathBuf,
    kopf_examples: PathBuf,
}

// === impl Check ===

impl Check {
    fn new() -> Result<Self> {
        let sdk = checkout::guest_sdk().join("python");
        let requirements = fs::read_to_string(sdk.join("requirements-dev.txt"))
            .context("cannot read requirements-dev.txt of the Python SDK")?;
        let tools = Tools::install(&requirements)?;
        let work = checkout::guest_build("python-sdk");
        let stubs = work.join("stubs");
        if stubs.exists() {
            fs::remove_dir_all(&stubs).with_context(|| format!("cannot remove {}", stubs.display()))?;
        }
        let mut bindings = tools.program("componentize-py");
        bindings
            .arg("--quiet")
            .arg("--wit-path")
            .arg(checkout::wit())
            .args(["--world", "plugin", "bindings"]);
        command::run(bindings.arg(&stubs))?;
        Ok(Self { tools, sdk, stubs, work, kopf_examples: kopf_examples()? })
    }

    /// Checks the types of the modules in a page, imports them, and runs their tests.
    fn page(&self, page: &Path) -> Result<()> {
        let folder = tempfile::Builder::new().prefix("page-").tempdir()?;
        let paths = readme::write(page, "python", folder.path())?;
        let names: Vec<_> = paths.iter().map(|path| path.trim_end_matches(".py")).collect();
        let packages = [self.sdk.join("src"), checkout::guest_sdk().join("python-kopf/src")];
        let imports = std::env::join_paths(&packages)?;
        let mut mypy = self.tools.module("mypy", &self.stubs)?;
        mypy.env("MYPYPATH", std::env::join_paths(packages.iter().chain([&self.stubs]))?);
        mypy.args(["--strict", "--python-version=3.11", "--cache-dir"]).arg(self.work.join("mypy-pages"));
        command::run(mypy.current_dir(folder.path()).arg("."))?;
        let mut python = self.tools.python();
        python.env("PYTHONPATH", &imports).env("PYTHONDONTWRITEBYTECODE", "1").current_dir(folder.path());
        let tests: Vec<_> = names.iter().filter(|name| name.starts_with("test_")).collect();
        let others = names.iter().copied().filter(|name| !name.starts_with("test_"));
        command::run(python.args(["-c", &format!("import {}", others.collect::<Vec<_>>().join(", "))]))?;
        if tests.is_empty() {
            return Ok(());
        }
        let mut pytest = self.tools.module("pytest", &packages[0])?;
        pytest.env("PYTHONDONTWRITEBYTECODE", "1").current_dir(folder.path());
        command::run(pytest.args(["--quiet", "-p", "no:cacheprovider"]))
    }

    /// Checks the project in a folder, which has a `pyproject.toml`.
    fn project(&self, folder: &Path) -> Result<()> {
        let config = self.sdk.join("pyproject.toml");
        let run = |program: &mut Command| command::run(program.current_dir(folder));
        for subcommand in [&["check"][..], &["format", "--check"]] {
            let mut ruff = self.tools.binary("ruff");
            ruff.args(subcommand).args(["--quiet", "--no-cache", "--config"]);
            run(ruff.arg(&config).arg("."))?;
        }
        let sources = self.sdk.join("src");
        let mut mypy = self.tools.module("mypy", &self.stubs)?;
        let found = std::env::join_paths([&sources, &self.stubs])?;
        run(mypy.env("MYPYPATH", found).arg("--cache-dir").arg(self.work.join("mypy")))?;
        let mut pytest = self.tools.module("pytest", &sources)?;
        pytest.env("PYTHONDONTWRITEBYTECODE", "1").env("KOPF_EXAMPLES", &self.kopf_examples);
        run(pytest.args(["--quiet", "-p", "no:cacheprovider"]))
    }
}

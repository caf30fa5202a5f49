//! Node.js, which must be installed, and packages from npm.

use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use super::versions::OLDEST_NODE;
use super::{cache, command};
use crate::progress;

/// The installed packages of a project.
pub(crate) struct Packages {
    folder: PathBuf,
}

// === impl Packages ===

impl Packages {
    /// Installs the packages of the project's `package-lock.json`, unless another project with the same lock
    /// file did.
    pub(crate) fn install(project: &Path) -> Result<Self> {
        check_node()?;
        let files = ["package.json", "package-lock.json"].map(|name| project.join(name));
        let mut hasher = DefaultHasher::new();
        for file in &files {
            fs::read(file).with_context(|| format!("cannot read {}", file.display()))?.hash(&mut hasher);
        }
        let folder = cache::entry(&format!("npm-{:016x}", hasher.finish()), |folder| {
            for file in &files {
                fs::copy(file, folder.join(file.file_name().unwrap_or_default()))?;
            }
            progress::step("downloading npm packages", || {
                // `npm ci` requires that the lock file contains the optional packages of every platform,
                // which some registries do not have. `npm install` uses the locked versions too.
                let mut npm = Command::new("npm");
                npm.current_dir(folder).args([
                    "install",
                    "--no-save",
                    "--ignore-scripts",
                    "--no-audit",
                    "--no-fund",
                ]);
                command::run(&mut npm)
            })
        })?;
        Ok(Self { folder })
    }

    /// Returns a program of these packages.
    pub(crate) fn program(&self, name: &str) -> Command {
        Command::new(self.folder.join("node_modules/.bin").join(name))
    }
}

fn check_node() -> Result<()> {
    let Ok(version) = command::output(Command::new("node").arg("--version")) else {
        bail!("no Node.js: install version {OLDEST_NODE} or newer, with npm");
    };
    let major =
        version.trim().trim_start_matches('v').split('.').next().and_then(|major| major.parse::<u32>().ok());
    ensure!(
        major.is_some_and(|major| major >= OLDEST_NODE),
        "Node.js {} is too old: install version {OLDEST_NODE} or newer",
        version.trim()
    );
    ensure!(command::exists("npm"), "no npm: install it; it comes with Node.js {OLDEST_NODE} or newer");
    Ok(())
}

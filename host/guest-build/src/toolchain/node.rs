//! Node.js, which must be installed, and packages from npm.

mod lock;

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use super::versions::OLDEST_NODE;
use super::{cache, command};
use crate::progress;

pub(crate) use lock::SDK;
use lock::Set;

/// The installed packages of a project, without the SDK.
pub struct Packages {
    /// The folders with the sets that are installed, the tools last.
    folders: Vec<PathBuf>,
}

// === impl Packages ===

impl Packages {
    /// Installs the packages of the project's `package-lock.json`, except the SDK, unless a project with the
    /// same packages did.
    pub fn install(project: &Path) -> Result<Self> {
        check_node()?;
        let lock = project.join("package-lock.json");
        ensure!(
            lock.is_file(),
            "{} is missing, which pins the tools of the build: `npm install --package-lock-only` in {} makes it \
             again",
            lock.display(),
            project.display()
        );
        let read =
            |file: &Path| fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()));
        let (manifest, lock) = (read(&project.join("package.json"))?, read(&lock)?);
        let [tools, others] = Set::divide(&manifest, &lock).with_context(|| project.display().to_string())?;
        let mut folders = vec![];
        for (set, what) in [(others, "npm packages"), (tools, "jco and TypeScript from npm")] {
            if !set.is_empty() {
                folders.push(install_set(&set, what)?);
            }
        }
        Ok(Self { folders })
    }

    /// Returns a program of these packages.
    pub fn program(&self, name: &str) -> Result<Command> {
        let mut paths = self.folders.iter().map(|folder| folder.join("node_modules/.bin").join(name));
        let path = paths.find(|path| path.is_file()).with_context(|| {
            format!(
                "package.json names no package with the program {name}: `devDependencies` of a new plugin has it \
                 (`oarlock plugin new`)"
            )
        })?;
        Ok(Command::new(path))
    }

    /// Links these packages into the `node_modules` of a folder, which may have others already.
    pub fn link(&self, folder: &Path) -> Result<()> {
        for modules in self.folders.iter().map(|folder| folder.join("node_modules")) {
            for package in packages(&modules)? {
                let link = folder.join("node_modules").join(package.strip_prefix(&modules)?);
                if link.symlink_metadata().is_err() {
                    fs::create_dir_all(link.parent().context("a folder above node_modules")?)?;
                    symlink(&package, &link).with_context(|| format!("cannot link {}", link.display()))?;
                }
            }
        }
        Ok(())
    }
}

/// Returns the folders of the packages in a `node_modules`.
fn packages(modules: &Path) -> Result<Vec<PathBuf>> {
    let mut found = vec![];
    for entry in fs::read_dir(modules).with_context(|| format!("cannot read {}", modules.display()))? {
        let path = entry?.path();
        match path.file_name().unwrap_or_default().as_encoded_bytes().first() {
            Some(b'@') => found.extend(packages(&path)?),
            Some(b'.') => {}
            _ => found.push(path),
        }
    }
    Ok(found)
}

fn install_set(set: &Set, what: &str) -> Result<PathBuf> {
    cache::entry(&set.entry_name(), |folder| {
        fs::write(folder.join("package.json"), set.manifest.to_string())?;
        fs::write(folder.join("package-lock.json"), set.lock.to_string())?;
        progress::step(&format!("downloading {what}"), || {
            // `npm ci` requires that the lock file contains the optional packages of every platform,
            // which some registries do not have. `npm install` uses the locked versions too.
            let mut npm = Command::new("npm");
            npm.current_dir(folder);
            npm.args(["install", "--no-save", "--ignore-scripts", "--no-audit", "--no-fund"]);
            command::run(&mut npm)
        })
    })
}

/// Returns the entry of the cache with the tools of a project, if it is there.
pub(crate) fn cached(manifest: &str, lock: &str) -> Option<PathBuf> {
    let [tools, _] = Set::divide(manifest, lock).ok()?;
    cache::existing_entry(&tools.entry_name()).ok().flatten()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lost_lock_file_is_named_with_the_command_that_makes_it() {
        let project = tempfile::tempdir().unwrap();
        fs::write(project.path().join("package.json"), "{}").unwrap();
        let error = Packages::install(project.path()).map(drop).unwrap_err().to_string();
        assert!(error.contains("package-lock.json is missing"), "{error}");
        assert!(error.contains("`npm install --package-lock-only` in "), "{error}");
    }

    #[test]
    fn the_packages_of_all_sets_are_linked() {
        let folder = tempfile::tempdir().unwrap();
        let at = |path: &str| folder.path().join(path);
        for path in
            ["others/node_modules/@types/ms", "tools/node_modules/@types/node", "tools/node_modules/.bin"]
        {
            fs::create_dir_all(at(path)).unwrap();
        }
        for (set, text) in [("others", "first"), ("tools", "second")] {
            fs::create_dir_all(at(set).join("node_modules/both")).unwrap();
            fs::write(at(set).join("node_modules/both/text"), text).unwrap();
        }
        let packages = Packages { folders: vec![at("others"), at("tools")] };
        packages.link(&at("project")).unwrap();
        let modules = at("project/node_modules");
        assert!(modules.join("@types/ms").is_dir() && modules.join("@types/node").is_dir());
        assert_eq!(fs::read_to_string(modules.join("both/text")).unwrap(), "first");
        assert!(!modules.join(".bin").exists());
        packages.link(&at("project")).unwrap();
    }
}

//! Node.js, which must be installed, and packages from npm.

use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use super::versions::OLDEST_NODE;
use super::{cache, command};
use crate::progress;

/// The installed packages of a project.
pub struct Packages {
    folder: PathBuf,
}

// === impl Packages ===

impl Packages {
    /// Installs the packages of the project's `package-lock.json`, unless a project with the same packages
    /// did.
    pub fn install(project: &Path) -> Result<Self> {
        check_node()?;
        let files = ["package.json", "package-lock.json"].map(|name| project.join(name));
        let texts = files
            .each_ref()
            .map(|file| fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display())));
        let [manifest, lock] = texts;
        let entry = entry_name([&manifest?, &lock?])
            .with_context(|| format!("the npm files in {}", project.display()))?;
        let folder = cache::entry(&entry, |folder| {
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
    pub fn program(&self, name: &str) -> Command {
        Command::new(self.folder.join("node_modules/.bin").join(name))
    }
}

/// Returns the name in the cache of what `package.json` and `package-lock.json` ask for. It does not depend
/// on the project's own name.
fn entry_name(manifest_and_lock: [&str; 2]) -> Result<String> {
    let mut hasher = DefaultHasher::new();
    for text in manifest_and_lock {
        let value: Value = serde_json::from_str(text).context("not JSON")?;
        for (key, value) in value.as_object().into_iter().flatten() {
            match (key.as_str(), value) {
                ("packages", Value::Object(packages)) => {
                    for (_, package) in packages.iter().filter(|(path, _)| !path.is_empty()) {
                        package.to_string().hash(&mut hasher);
                    }
                }
                ("dependencies" | "devDependencies" | "optionalDependencies" | "overrides", value) => {
                    (key, value.to_string()).hash(&mut hasher);
                }
                _ => {}
            }
        }
    }
    Ok(format!("npm-{:016x}", hasher.finish()))
}

/// Returns the entry of the cache with the packages of a project, if it is there.
pub(crate) fn cached(manifest_and_lock: [&str; 2]) -> Option<PathBuf> {
    cache::existing_entry(&entry_name(manifest_and_lock).ok()?).ok().flatten()
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
    fn projects_with_the_same_packages_share_them() {
        let entry = |name: &str, version: &str| {
            let manifest = format!(r#"{{"name": "{name}", "devDependencies": {{"jco": "{version}"}}}}"#);
            let lock = format!(
                r#"{{"name": "{name}", "packages": {{"": {{"name": "{name}"}}, "node_modules/jco": {{"version": "{version}"}}}}}}"#
            );
            entry_name([&manifest, &lock]).unwrap()
        };
        assert_eq!(entry("a", "1.0.0"), entry("b", "1.0.0"));
        assert_ne!(entry("a", "1.0.0"), entry("a", "1.0.1"));
    }
}

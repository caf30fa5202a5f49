//! Node.js, which must be installed, and packages from npm.

use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use super::versions::OLDEST_NODE;
use super::{cache, command};
use crate::progress;

/// The npm package of the SDK, which builds provide.
pub(crate) const SDK: &str = "@oarlock/sdk";

/// The installed packages of a project.
pub struct Packages {
    folder: PathBuf,
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
        let files = [project.join("package.json"), lock];
        let [manifest, lock] = files.each_ref().map(|file| {
            let text = fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
            without_sdk(&text).with_context(|| format!("{} is wrong", file.display()))
        });
        let texts = [manifest?, lock?];
        let entry = entry_name([&texts[0], &texts[1]])?;
        let folder = cache::entry(&entry, |folder| {
            for (file, text) in files.iter().zip(&texts) {
                fs::write(folder.join(file.file_name().unwrap_or_default()), text)?;
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
    pub fn program(&self, name: &str) -> Result<Command> {
        let path = self.modules().join(".bin").join(name);
        ensure!(
            path.is_file(),
            "package.json names no package with the program {name}: `devDependencies` of a new plugin has it \
             (`oarlock plugin new`)"
        );
        Ok(Command::new(path))
    }

    /// Returns the folder `node_modules` with the packages.
    #[must_use]
    pub fn modules(&self) -> PathBuf {
        self.folder.join("node_modules")
    }

    /// Makes these packages the `node_modules` of a folder.
    pub(crate) fn link(&self, folder: &Path) -> Result<()> {
        let link = folder.join("node_modules");
        symlink(self.modules(), &link).with_context(|| format!("cannot link {}", link.display()))
    }
}

/// Returns a `package.json` or `package-lock.json` without the SDK, which no registry has.
fn without_sdk(text: &str) -> Result<String> {
    let mut value: Value = serde_json::from_str(text).context("not JSON")?;
    drop_sdk(&mut value);
    if let Some(packages) = value.get_mut("packages").and_then(Value::as_object_mut) {
        packages.remove(&format!("node_modules/{SDK}"));
        packages.values_mut().for_each(drop_sdk);
    }
    Ok(value.to_string())
}

/// Removes the SDK from the dependencies of one package, and a list that is then empty.
fn drop_sdk(package: &mut Value) {
    let Some(package) = package.as_object_mut() else { return };
    for kind in ["dependencies", "devDependencies"] {
        if let Some(named) = package.get_mut(kind).and_then(Value::as_object_mut) {
            named.remove(SDK);
            if named.is_empty() {
                package.remove(kind);
            }
        }
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
    let [manifest, lock] = manifest_and_lock.map(|text| without_sdk(text).ok());
    cache::existing_entry(&entry_name([&manifest?, &lock?]).ok()?).ok().flatten()
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

    #[test]
    fn the_sdk_is_not_asked_of_a_registry() {
        let with = r#"{"dependencies": {"@oarlock/sdk": "^0.1.0"}, "devDependencies": {"jco": "1"}, "packages": {
            "": {"dependencies": {"@oarlock/sdk": "^0.1.0", "ms": "2"}}, "node_modules/@oarlock/sdk": {}}}"#;
        let without = serde_json::json!({"devDependencies": {"jco": "1"}, "packages": {"": {"dependencies": {"ms": "2"}}}});
        assert_eq!(serde_json::from_str::<Value>(&without_sdk(with).unwrap()).unwrap(), without);
    }

    #[test]
    fn a_lost_lock_file_is_named_with_the_command_that_makes_it() {
        let project = tempfile::tempdir().unwrap();
        fs::write(project.path().join("package.json"), "{}").unwrap();
        let error = Packages::install(project.path()).map(drop).unwrap_err().to_string();
        assert!(error.contains("package-lock.json is missing"), "{error}");
        assert!(error.contains("`npm install --package-lock-only` in "), "{error}");
    }
}

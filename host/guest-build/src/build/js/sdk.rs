//! `@oarlock/sdk`, compiled as for npm. As long as npm does not have it, a build puts it where the bundler,
//! the type checker, editors and tests find it: into `node_modules`.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::super::copy;
use crate::Project;
use crate::embedded::write;
use crate::toolchain::node::{Packages, SDK};
use crate::toolchain::{cache, command};

/// What the package is compiled from.
const SOURCES: [&str; 3] = ["package.json", "tsconfig.json", "src"];

/// In a package that this file has written, and may write again: the digest of its sources.
const MARK: &str = ".oarlock";

/// The SDK of a project that names it.
pub(super) struct Sdk {
    folder: PathBuf,
    manifest: String,
}

// === impl Sdk ===

impl Sdk {
    /// Returns the SDK if `package.json` names it.
    pub(super) fn of(project: &Project) -> Result<Option<Self>> {
        let Some(wanted) = wanted(&project.folder.join("package.json"))? else {
            return Ok(None);
        };
        let folder = project.sdk.join("ts");
        let path = folder.join("package.json");
        let manifest =
            fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let version = json(&path, &manifest)?["version"].as_str().unwrap_or_default().to_owned();
        if !fits(&wanted, &version) {
            bail!(
                "{} names {SDK} {wanted}, and this version of oarlock has {version}: write \"^{version}\"",
                project.folder.join("package.json").display()
            );
        }
        Ok(Some(Self { folder, manifest }))
    }

    /// Lets npm find the package in the project's `node_modules`, so that it does not look for it in a
    /// registry. Needs no tools.
    pub(super) fn introduce_to_npm(&self, project: &Project) -> Result<()> {
        let path = place(&project.folder).join("package.json");
        if path.is_file() { Ok(()) } else { write(&path, self.manifest.as_bytes()) }
    }

    /// Puts the compiled package into the build, and into the project unless npm did.
    pub(super) fn put_into(&self, project: &Project, packages: &Packages, build: &Path) -> Result<()> {
        let digest = digest(project)?;
        let compiled = cache::entry(&format!("npm-sdk-{digest}"), |folder| {
            for source in SOURCES {
                let (from, to) = (self.folder.join(source), folder.join(source));
                if from.is_dir() { copy(&from, &to)? } else { fs::copy(&from, &to).map(drop)? }
            }
            let mut types = packages.program("jco")?;
            types.current_dir(folder).arg("guest-types").arg(&project.wit);
            command::run(types.args(["--world-name", "plugin", "--out-dir", "types"]))?;
            command::compile("tsc", packages.program("tsc")?.current_dir(folder))?;
            fs::remove_dir_all(folder.join("src"))?;
            fs::remove_file(folder.join("tsconfig.json"))?;
            Ok(())
        })?;
        copy(&compiled, &place(build))?;
        let place = place(&project.folder);
        let mark = fs::read_to_string(place.join(MARK)).ok();
        let is_introduced = mark.is_none() && !place.join("dist").exists();
        if is_introduced || mark.is_some_and(|mark| mark != digest) {
            fs::remove_dir_all(&place).with_context(|| format!("cannot remove {}", place.display()))?;
            copy(&compiled, &place)?;
            write(&place.join(MARK), digest.as_bytes())?;
        }
        Ok(())
    }
}

/// Returns a digest of what the package is compiled from.
pub(super) fn digest(project: &Project) -> Result<String> {
    let mut digest = Sha256::new();
    let folder = project.sdk.join("ts");
    for place in SOURCES.map(|source| folder.join(source)).iter().chain([&project.wit]) {
        add(place, &mut digest)?;
    }
    Ok(digest.finalize().iter().take(8).map(|byte| format!("{byte:02x}")).collect())
}

fn add(path: &Path, digest: &mut Sha256) -> Result<()> {
    if path.is_dir() {
        let entries = fs::read_dir(path)?.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>>>();
        let mut entries = entries.with_context(|| format!("cannot read {}", path.display()))?;
        entries.sort();
        return entries.iter().try_for_each(|entry| add(entry, digest));
    }
    let bytes = fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    digest.update(path.file_name().unwrap_or_default().as_encoded_bytes());
    digest.update((bytes.len() as u64).to_le_bytes());
    digest.update(&bytes);
    Ok(())
}

/// Returns where the package is below a folder.
fn place(folder: &Path) -> PathBuf {
    folder.join("node_modules").join(SDK)
}

/// Returns the versions of the SDK that `package.json` asks for.
fn wanted(package_json: &Path) -> Result<Option<String>> {
    let text = fs::read_to_string(package_json)
        .with_context(|| format!("cannot read {}", package_json.display()))?;
    let parsed = json(package_json, &text)?;
    let named = ["dependencies", "devDependencies"].map(|kind| parsed[kind][SDK].as_str());
    Ok(named.into_iter().flatten().next().map(str::to_owned))
}

fn json(path: &Path, text: &str) -> Result<Value> {
    serde_json::from_str(text).with_context(|| format!("{} is not JSON", path.display()))
}

/// Returns whether a version is one of `wanted`: a version, one with `^` or `~`, or `*`.
fn fits(wanted: &str, version: &str) -> bool {
    let parts = |text: &str| {
        let parts: Vec<u32> = text.split('.').map_while(|part| part.parse().ok()).collect();
        <[u32; 3]>::try_from(parts).ok()
    };
    let Some([major, minor, patch]) = parts(version) else { return false };
    let (is_at_least, least) = match wanted.strip_prefix('^').or_else(|| wanted.strip_prefix('~')) {
        Some(least) => (true, least),
        None => (false, wanted),
    };
    match parts(least) {
        None => wanted == "*",
        Some(least) if !is_at_least => least == [major, minor, patch],
        Some(least) => {
            let is_same_minor = major == 0 || wanted.starts_with('~');
            least[0] == major && (least[1] == minor || !is_same_minor) && least <= [major, minor, patch]
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_templates_name_the_version_that_is_embedded() {
        let embedded = include_str!("../../../../../guest-sdk/ts/package.json");
        let embedded: Value = serde_json::from_str(embedded).unwrap();
        for template in ["ts/project/package.json", "js/project/package.json"] {
            let manifest = crate::embedded::TEMPLATES.get_file(template).unwrap().contents_utf8().unwrap();
            let manifest: Value = serde_json::from_str(manifest).unwrap();
            let wanted = manifest["dependencies"][SDK].as_str().unwrap();
            assert!(fits(wanted, embedded["version"].as_str().unwrap()), "{template}: {wanted}");
        }
    }

    #[test]
    fn ranges_of_versions_are_those_of_npm() {
        for (wanted, version, expected) in [
            ("^0.1.0", "0.1.0", true),
            ("^0.1.0", "0.1.7", true),
            ("^0.1.3", "0.1.2", false),
            ("^0.1.0", "0.2.0", false),
            ("^1.1.0", "1.2.0", true),
            ("~1.1.0", "1.2.0", false),
            ("0.1.0", "0.1.0", true),
            ("0.1.0", "0.1.1", false),
            ("*", "0.1.0", true),
            ("latest!", "0.1.0", false),
        ] {
            assert_eq!(fits(wanted, version), expected, "{wanted} {version}");
        }
    }
}

//! The packages of a project, divided: the tools of the build, which most projects share, and the others.
//! Each part is installed by itself, so that another package in a project does not fetch the tools again.

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};

use anyhow::{Context, Result};
use serde_json::{Map, Value, json};

/// The npm package of the SDK, which builds provide.
pub(crate) const SDK: &str = "@oarlock/sdk";

/// The packages that builds run.
const TOOLS: [&str; 2] = ["@bytecodealliance/jco", "typescript"];

/// Where `package.json` names packages.
const KINDS: [&str; 3] = ["dependencies", "devDependencies", "optionalDependencies"];

/// Where a package in `package-lock.json` names packages.
const REQUIRED: [&str; 3] = ["dependencies", "optionalDependencies", "peerDependencies"];

/// Packages to install, as the two files that npm reads.
#[derive(Debug, PartialEq)]
pub(super) struct Set {
    pub(super) manifest: Value,
    pub(super) lock: Value,
}

// === impl Set ===

impl Set {
    /// Returns the tools and the other packages of a project, without the SDK.
    pub(super) fn divide(manifest: &str, lock: &str) -> Result<[Self; 2]> {
        let manifest: Value = serde_json::from_str(manifest).context("package.json is not JSON")?;
        let lock: Value = serde_json::from_str(lock).context("package-lock.json is not JSON")?;
        let tools = Self::of(&manifest, &lock, |name| TOOLS.contains(&name));
        let others = Self::of(&manifest, &lock, |name| name != SDK && !TOOLS.contains(&name));
        Ok([tools, others])
    }

    /// Returns the packages that `package.json` names, if `is_chosen`, and those that they require.
    fn of(manifest: &Value, lock: &Value, is_chosen: impl Fn(&str) -> bool) -> Self {
        let mut root = Map::new();
        let mut names = vec![];
        for kind in KINDS {
            let named = manifest[kind].as_object().into_iter().flatten();
            let chosen: Map<_, _> = named
                .filter(|(name, _)| is_chosen(name))
                .map(|(name, it)| (name.clone(), it.clone()))
                .collect();
            names.extend(chosen.keys().cloned());
            if !chosen.is_empty() {
                root.insert(kind.to_owned(), chosen.into());
            }
        }
        let empty = Map::new();
        let locked = lock["packages"].as_object().unwrap_or(&empty);
        let paths = required(locked, &names);
        let mut packages = Map::from_iter([(String::new(), root.clone().into())]);
        let chosen = locked.iter().filter(|(path, _)| paths.contains(path.as_str()));
        packages.extend(chosen.map(|(path, package)| (path.clone(), package.clone())));
        if !manifest["overrides"].is_null() {
            root.insert("overrides".to_owned(), manifest["overrides"].clone());
        }
        Self {
            manifest: root.into(),
            lock: json!({"lockfileVersion": lock["lockfileVersion"], "requires": true, "packages": packages}),
        }
    }

    /// Returns whether `package.json` names none of these packages.
    pub(super) fn is_empty(&self) -> bool {
        KINDS.iter().all(|kind| self.manifest[kind].is_null())
    }

    /// Returns the name of the set in the cache.
    pub(super) fn entry_name(&self) -> String {
        let mut hasher = DefaultHasher::new();
        (self.manifest.to_string(), self.lock.to_string()).hash(&mut hasher);
        format!("npm-{:016x}", hasher.finish())
    }
}

/// Returns the paths of these packages, and of all that they require, in `package-lock.json`.
fn required<'a>(locked: &'a Map<String, Value>, names: &[String]) -> BTreeSet<&'a str> {
    let mut found = BTreeSet::new();
    let mut open: Vec<&str> = names.iter().filter_map(|name| resolve(locked, "", name)).collect();
    while let Some(path) = open.pop() {
        if found.insert(path) {
            let named = REQUIRED.iter().filter_map(|kind| locked[path][kind].as_object()).flatten();
            open.extend(named.filter_map(|(name, _)| resolve(locked, path, name)));
        }
    }
    found
}

/// Returns the path of the package that `name` means in the package at `path`: the nearest one above it.
fn resolve<'a>(locked: &'a Map<String, Value>, path: &str, name: &str) -> Option<&'a str> {
    let mut at = path;
    loop {
        let separator = if at.is_empty() { "" } else { "/" };
        if let Some((found, _)) = locked.get_key_value(&format!("{at}{separator}node_modules/{name}")) {
            return Some(found);
        }
        if at.is_empty() {
            return None;
        }
        at = at.rfind("/node_modules/").map_or("", |end| &at[..end]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MANIFEST: &str = r#"{"name": "a", "dependencies": {"@oarlock/sdk": "^0.1.0", "ms": "2"},
        "devDependencies": {"@bytecodealliance/jco": "1", "typescript": "5"}, "overrides": {"shim": "0"}}"#;
    const LOCK: &str = r#"{"name": "a", "lockfileVersion": 3, "packages": {
        "": {"name": "a"},
        "node_modules/@oarlock/sdk": {"version": "0.1.0"},
        "node_modules/ms": {"version": "2.0.0", "dependencies": {"both": "1"}},
        "node_modules/both": {"version": "1.0.0"},
        "node_modules/unused": {"version": "1.0.0"},
        "node_modules/typescript": {"version": "5.0.0"},
        "node_modules/@bytecodealliance/jco": {"version": "1.0.0", "dependencies": {"typescript": "7", "shim": "0"}},
        "node_modules/@bytecodealliance/jco/node_modules/typescript": {"version": "7.0.0",
            "optionalDependencies": {"shim": "0", "other-platform": "1"}},
        "node_modules/shim": {"version": "0.0.1", "peerDependencies": {"both": "1"}}}}"#;

    fn paths(set: &Set) -> Vec<&str> {
        set.lock["packages"].as_object().unwrap().keys().map(String::as_str).collect()
    }

    #[test]
    fn tools_and_other_packages_are_divided_with_what_they_require() {
        let [tools, others] = Set::divide(MANIFEST, LOCK).unwrap();
        assert_eq!(
            paths(&tools),
            [
                "",
                "node_modules/both",
                "node_modules/typescript",
                "node_modules/@bytecodealliance/jco",
                "node_modules/@bytecodealliance/jco/node_modules/typescript",
                "node_modules/shim"
            ]
        );
        assert_eq!(paths(&others), ["", "node_modules/ms", "node_modules/both"]);
        assert_eq!(
            tools.manifest,
            json!({"devDependencies": {"@bytecodealliance/jco": "1", "typescript": "5"}, "overrides": {"shim": "0"}})
        );
        assert_eq!(others.manifest, json!({"dependencies": {"ms": "2"}, "overrides": {"shim": "0"}}));
    }

    #[test]
    fn projects_share_their_tools_whatever_else_they_need() {
        let other = MANIFEST.replace("\"name\": \"a\"", "\"name\": \"b\"").replace(", \"ms\": \"2\"", "");
        let [tools, _] = Set::divide(MANIFEST, LOCK).unwrap();
        let [same, none] = Set::divide(&other, LOCK).unwrap();
        assert_eq!(tools.entry_name(), same.entry_name());
        assert!(none.is_empty() && !tools.is_empty());
        let [newer, _] = Set::divide(MANIFEST, &LOCK.replace("5.0.0", "5.0.1")).unwrap();
        assert_ne!(tools.entry_name(), newer.entry_name());
    }

    #[test]
    fn each_template_has_the_tools_of_the_others() {
        let text = |path: &str| {
            let file = crate::embedded::TEMPLATES.get_file(path);
            file.unwrap_or_else(|| panic!("no {path}")).contents_utf8().unwrap().to_owned()
        };
        let entry = |language: &str| {
            let [manifest, lock] =
                ["package.json", "package-lock.json"].map(|name| text(&format!("{language}/project/{name}")));
            let [tools, _] = Set::divide(&manifest, &lock).unwrap();
            tools.entry_name()
        };
        assert_eq!(entry("ts"), entry("js"));
    }
}

//! Finds the tags in the tests' sources.
//!
//! Reads rustfmt's output line by line, and follows the modules from each target's root. Tags in a file that
//! is no module are an error.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::cargo::{self, Target};
use crate::checkout;
use crate::toolchain::command;

const TAG: &str = "// Conformance: ";

/// The folders of tests with tags.
const PLACES: [&str; 2] = ["host", "tests"];

/// One id of one tag.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Tagged {
    pub(super) id: String,
    /// The test as a crate path.
    pub(super) test: String,
    /// File and line.
    pub(super) place: String,
}

/// The result of reading one file.
#[derive(Debug, Default)]
struct Reading {
    tagged: Vec<Tagged>,
    modules: Vec<Module>,
    faults: Vec<String>,
}

/// A module in a file of its own.
#[derive(Debug, PartialEq, Eq)]
struct Module {
    /// Its name, after the names of the inline modules around it.
    names: Vec<String>,
    /// The value of `#[path]`.
    path: Option<String>,
}

/// A file that was not read yet.
struct UnreadFile {
    file: PathBuf,
    /// The path of its module from the crate's root.
    module: Vec<String>,
    /// The folder of the files of its submodules.
    folder: PathBuf,
}

/// Returns the tags of all tests of the workspace, and the errors found.
pub(super) fn collect() -> Result<(Vec<Tagged>, Vec<String>)> {
    let mut tagged = Vec::new();
    let mut faults = Vec::new();
    let mut seen = BTreeSet::new();
    for target in cargo::test_targets()? {
        if !PLACES.iter().any(|place| target.root.starts_with(checkout::root().join(place))) {
            continue;
        }
        let mut unread = vec![UnreadFile::root(&target.root)];
        while let Some(UnreadFile { file, module, folder }) = unread.pop() {
            let text =
                fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))?;
            let reading = read(&shown(&file), &text, &target, &module);
            tagged.extend(reading.tagged);
            faults.extend(reading.faults);
            unread.extend(reading.modules.iter().filter_map(|found| found.file(&module, &folder)));
            seen.insert(file);
        }
    }
    faults.extend(orphans(&seen)?);
    Ok((tagged, faults))
}

/// Returns the files with tags that are no module of any target.
fn orphans(seen: &BTreeSet<PathBuf>) -> Result<Vec<String>> {
    let mut git = Command::new("git");
    git.current_dir(checkout::root()).args(["ls-files", "host/*.rs", "tests/*.rs"]);
    let mut faults = Vec::new();
    for file in command::output(&mut git)?.lines().map(|file| checkout::root().join(file)) {
        if seen.contains(&file) || !file.exists() {
            continue;
        }
        if fs::read_to_string(&file)?.lines().any(|line| line.trim_start().starts_with(TAG)) {
            faults.push(format!("{}: has tags, but is in no test target", shown(&file)));
        }
    }
    Ok(faults)
}

// === impl UnreadFile ===

impl UnreadFile {
    fn root(file: &Path) -> Self {
        let folder = file.parent().unwrap_or(file).to_owned();
        Self { file: file.to_owned(), module: Vec::new(), folder }
    }
}

// === impl Module ===

impl Module {
    /// Returns the module's file, if it exists.
    fn file(&self, parent: &[String], folder: &Path) -> Option<UnreadFile> {
        let Self { names, path } = self;
        let module = parent.iter().chain(names).cloned().collect();
        let stem = names.iter().fold(folder.to_owned(), |path, name| path.join(name));
        let (file, folder) = match path {
            // The submodules of a file with `#[path]` are in the folder of that file, as for a root.
            Some(path) => {
                let file = folder.join(path);
                let folder = file.parent()?.to_owned();
                (file, folder)
            }
            None => (stem.with_extension("rs"), stem),
        };
        file.exists().then_some(UnreadFile { file, module, folder })
    }
}

fn shown(file: &Path) -> String {
    file.strip_prefix(checkout::root()).unwrap_or(file).display().to_string()
}

fn read(file: &str, text: &str, target: &Target, module: &[String]) -> Reading {
    let mut reading = Reading::default();
    // Inline modules, with the indentation of their closing brace.
    let mut inline: Vec<(usize, String)> = Vec::new();
    let mut pending: Option<(usize, Vec<String>)> = None;
    let mut path: Option<String> = None;
    let mut is_test = false;
    for (number, line) in (1..).zip(text.lines()) {
        let code = line.trim_start();
        let indentation = line.len() - code.len();
        let below = |name: &str, inline: &[(usize, String)]| {
            inline.iter().map(|(_, name)| name.clone()).chain([name.to_owned()]).collect::<Vec<_>>()
        };
        if code == "}" && inline.last().is_some_and(|(at, _)| *at == indentation) {
            inline.pop();
        } else if let Some(name) = module_name(code, " {") {
            inline.push((indentation, name.to_owned()));
        } else if let Some(name) = module_name(code, ";") {
            reading.modules.push(Module { names: below(name, &inline), path: path.take() });
        } else if let Some(named) = code.strip_prefix("#[path = \"") {
            path = named.strip_suffix("\"]").map(str::to_owned);
        } else if let Some(ids) = code.strip_prefix(TAG) {
            let (_, ids_so_far) = pending.get_or_insert_with(|| (number, Vec::new()));
            ids_so_far.extend(ids.split(',').map(|id| id.trim().to_owned()));
            is_test = false;
        } else if let Some((tag, ids)) = &pending {
            if let Some(name) = function_name(code) {
                let names: Vec<_> = module.iter().cloned().chain(below(name, &inline)).collect();
                let test = format!("{}{}", target.prefix(), names.join("::"));
                if is_test {
                    reading.tagged.extend(ids.iter().map(|id| Tagged {
                        id: id.clone(),
                        test: test.clone(),
                        place: format!("{file}:{tag}"),
                    }));
                } else {
                    reading.faults.push(format!("{file}:{tag}: {name} has a tag, but is not a test"));
                }
                pending = None;
            } else if code.starts_with("#[") {
                is_test |= ["#[test]", "#[tokio::test"].iter().any(|test| code.starts_with(test));
            } else if !(code.starts_with("//") || code.is_empty() || is_in_attribute(code)) {
                reading.faults.push(format!("{file}:{tag}: there is no test below the tag"));
                pending = None;
            }
        }
    }
    reading.faults.extend(pending.map(|(tag, _)| format!("{file}:{tag}: there is no test below the tag")));
    reading
}

fn module_name<'l>(code: &'l str, end: &str) -> Option<&'l str> {
    let name = ["", "pub ", "pub(crate) ", "pub(super) "]
        .iter()
        .find_map(|visibility| code.strip_prefix(visibility)?.strip_prefix("mod "))?;
    name.strip_suffix(end).filter(|name| name.chars().all(|char| char.is_alphanumeric() || char == '_'))
}

fn function_name(code: &str) -> Option<&str> {
    let code = code.strip_prefix("async ").unwrap_or(code);
    let (name, _) = code.strip_prefix("fn ")?.split_once(['(', '<'])?;
    Some(name)
}

/// Returns whether a line continues an attribute that rustfmt broke into lines.
fn is_in_attribute(code: &str) -> bool {
    code.ends_with(',') || code == ")]"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target() -> Target {
        Target { package: "crate".into(), name: "crate".into(), is_library: true, root: PathBuf::new() }
    }

    #[test]
    fn tags_are_found_with_their_tests() {
        let text = "
#[path = \"it/support.rs\"]
mod support;
// Conformance: 1.1, G.2
#[tokio::test(start_paused = true)]
async fn one() {}

mod model {
    proptest! {
        // Conformance: 1.2
        /// Words.
        #[test]
        fn two(steps in steps()) {}
    }
    pub(super) mod deeper;
}

// Conformance: 1.3
// Conformance: 1.4
#[test]
fn three<T>() {}
";
        let reading = read("a.rs", text, &target(), &["tests".into()]);
        let found: Vec<_> =
            reading.tagged.iter().map(|tagged| format!("{} {}", tagged.id, tagged.test)).collect();
        assert_eq!(
            found,
            [
                "1.1 crate tests::one",
                "G.2 crate tests::one",
                "1.2 crate tests::model::two",
                "1.3 crate tests::three",
                "1.4 crate tests::three"
            ]
        );
        let modules: Vec<_> =
            reading.modules.iter().map(|module| (module.names.join("::"), module.path.as_deref())).collect();
        assert_eq!(modules, [("support".into(), Some("it/support.rs")), ("model::deeper".into(), None)]);
        assert_eq!(reading.faults, [""; 0]);
    }

    #[test]
    fn a_tag_above_other_code_is_an_error() {
        let text =
            "// Conformance: 1.1\nfn helper() {}\n// Conformance: 1.2\nstruct Gone;\n// Conformance: 1.3\n";
        let reading = read("a.rs", text, &target(), &[]);
        assert_eq!(
            reading.faults,
            [
                "a.rs:1: helper has a tag, but is not a test",
                "a.rs:3: there is no test below the tag",
                "a.rs:5: there is no test below the tag"
            ]
        );
    }
}
